import { type Agent, type AgentFunction, type AgentOptions, defineAgent, type Event, type Run } from 'rivulet';

/** An agent that a library's adapter has made, for a test. */
export const serve = (run: AgentFunction, options?: AgentOptions): Agent =>
  defineAgent({ name: 'chat', description: 'Talks.' }, run, options);

/** The content of each part that the events have, in the order in which the agent emitted them. */
export const tokensOf = (events: readonly Event[]): (string | undefined)[] =>
  events.flatMap((event) => (event.type === 'message.part' ? [event.part.content] : []));

/** The parts of each message of a run: the content, or the metadata of those without. */
export const said = ({ output }: Run) =>
  output.map(({ parts }) => parts.map(({ content, metadata }) => content ?? metadata));

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
