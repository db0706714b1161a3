import {
  type Agent,
  type AgentFunction,
  type AgentOptions,
  defineAgent,
  type Event,
  type MessagePart,
  type Run,
} from 'rivulet';

/** An agent that a library's adapter has made, for a test. */
export const serve = (run: AgentFunction, options?: AgentOptions): Agent =>
  defineAgent({ name: 'chat', description: 'Talks.' }, run, options);

/** The content of each part that the events have, in the order in which the agent emitted them. */
export const tokensOf = (events: readonly Event[]): (string | undefined)[] =>
  events.flatMap((event) => (event.type === 'message.part' ? [event.part.content] : []));

/** The parts of each message of a run: the content, or the metadata of those without. A call has its result in its place. */
export const said = ({ output }: Run) => saidIn(output).filter((parts) => parts.length > 0);

const saidIn = (output: Run['output']) =>
  output.map(({ parts }) =>
    parts.flatMap(({ content, metadata }) => {
      if (metadata?.kind !== 'trajectory' || metadata.tool_call_id === undefined) return [content ?? metadata];
      const { tool_call_id: id, ...step } = metadata;
      if (step.tool_input === undefined) return [];
      const ends = output.flatMap(({ parts: all }) => all).find((part) => isEndOf(part, id));
      return [{ ...step, ...ends?.metadata, tool_call_id: undefined }];
    }),
  );

/** What is the same of a run in each of its lives, also where a tool was cut off: the text of its last message. */
export const lastText = ({ output }: Run): unknown =>
  output.at(-1)?.parts.flatMap(({ content, metadata }) => (metadata === undefined ? [content] : []));

const isEndOf = ({ metadata }: MessagePart, id: string): boolean =>
  metadata?.kind === 'trajectory' && metadata.tool_call_id === id && metadata.tool_input === undefined;

/** The metadata of a step: a call of the tool `weather` for a city, with its result. */
export const weatherStep = (city: string, tool_output: object = { degrees: 20 }) => ({
  kind: 'trajectory',
  tool_name: 'weather',
  tool_input: { city },
  tool_output,
});

/** The question whether the tool `weather` may look up Oslo. */
export const weatherApproval = {
  schema: { type: 'boolean' },
  message: {
    parts: [
      { content: 'May the tool weather run?' },
      { content: '{"tool_name":"weather","tool_input":{"city":"Oslo"}}' },
    ],
  },
};
