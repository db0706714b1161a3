import { Agent, type AgentInputItem, OpenAIProvider, Runner, tool } from '@openai/agents';
import { expect } from 'vitest';
import { runsOf, type ServeChats, statesOf, turns } from './agent.ts';
import { keepsNothing, listed, type Seen } from './seen.ts';

/** A yes of the user, as a tool of the client. Without this tool, the SDK fails at the question. */
const askUser = tool({
  name: 'ask_user',
  description: 'Asks the user.',
  parameters: { type: 'object', properties: {}, required: [], additionalProperties: true },
  strict: false,
  execute: () => 'true',
});

/** An agent of the SDK whose model is this server's agent, by Responses or by Chat Completions. */
export async function openAiAgents(serve: ServeChats, useResponses: boolean): Promise<Seen> {
  const open = (url: string) => {
    const modelProvider = new OpenAIProvider({ baseURL: `${url}/v1`, apiKey: 'none', useResponses });
    const runner = new Runner({ modelProvider, tracingDisabled: true });
    const agent = new Agent({ name: 'user', model: 'chat', ...(useResponses && { tools: [askUser] }) });
    let previous: { readonly id: string | undefined; readonly history: AgentInputItem[] } | undefined;
    return async (input: string, signal?: AbortSignal) => {
      const seen: string[] = [];
      const raw: string[] = [];
      const said = { role: 'user' as const, content: input };
      const result = await runner.run(agent, useResponses ? input : [...(previous?.history ?? []), said], {
        stream: true,
        ...(useResponses && previous?.id !== undefined && { previousResponseId: previous.id }),
        ...(signal !== undefined && { signal }),
      });
      const read = async (): Promise<void> => {
        for await (const event of result) {
          if (event.type === 'run_item_stream_event') seen.push(`\`${event.name}\``);
          if (event.type !== 'raw_model_stream_event' || event.data.type !== 'model') continue;
          const { type, item } = event.data.event;
          if (type === 'response.output_item.added') raw.push(`raw event of \`${item.name ?? item.type}\``);
        }
        await result.completed;
        previous = { id: result.lastResponseId, history: result.history };
      };
      return { seen, raw, read };
    };
  };
  const chats = await serve();
  const say = open(chats.url);
  const first = await say(turns[0]);
  const read = first.read();
  await chats.working();
  if (useResponses) await expect.poll(() => first.raw.length).toBeGreaterThan(0);
  const working = listed([...first.raw, ...first.seen]);
  chats.release();
  await read;
  const told = [first.seen.join(', ')];
  for (const input of turns.slice(1)) {
    const next = await say(input);
    const error = await next.read().then(
      () => [],
      (problem: Error) => [problem.name],
    );
    told.push([...next.seen, ...error].join(', '));
  }
  const others = await serve();
  const sayThere = open(others.url);
  const stop = new AbortController();
  const stopped = (await sayThere(turns[0], stop.signal)).read().catch(() => {});
  await others.working();
  stop.abort();
  await stopped;
  // The run of a chat completion is cancelled when its client has gone.
  if (!useResponses) await expect.poll(() => statesOf(others)).toContain('cancelled');
  others.release();
  const anew = await sayThere(turns[0]);
  await anew.read();
  return {
    working,
    end: told.join('; '),
    reload: keepsNothing,
    again: [listed(anew.seen), await runsOf(others)].join('; '),
  };
}
