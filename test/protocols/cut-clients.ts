import { concat, concatMap, from, map, of, timer } from 'rxjs';
import { expect } from 'vitest';
import { followTask } from '../../examples/a2a/follow-task.ts';
import { ReconnectingAgent } from '../../examples/ag-ui/reconnecting-agent.ts';
import { resumingFetch } from '../../src/client/ai-sdk.ts';
import { type Agent, file, progress, sharedState, statePatch, trajectory } from '../../src/index.ts';
import { agent } from '../support/agents.ts';
import { bindings, clientOf, message } from './a2a/clients.ts';
import { showcase, ticks } from './ai-sdk/agents.ts';
import { openChat, type Version, versionNames } from './ai-sdk/chats.ts';
import { shown, turnOf } from './ai-sdk/turns.ts';
import { type Cut, cutting } from './cutting.ts';
import { clients as mcpClients } from './mcp/clients.ts';

const slowly = (...tokens: string[]) => from(tokens).pipe(concatMap((token) => timer(1).pipe(map(() => token))));

/** Says something, works, emits output of other kinds, asks, and goes on: a stream that may be cut anywhere. */
const talker = agent('talker', (_, context) =>
  concat(
    slowly('One ', '“two” ', 'three.'),
    of(trajectory({ tool_name: 'search', tool_input: { q: 'x' }, tool_output: { hits: 2 } })),
    of(file('a.txt', 'hello'), progress('half', { done: 1, total: 2 })),
    of(sharedState({ steps: [] }), statePatch([{ op: 'add', path: '/steps/-', value: 1 }])),
    slowly('Shall ', 'I?'),
    context.await('Well?').pipe(map((reply) => `You said ${reply.message.parts[0]?.content}.`)),
    slowly(' And ', 'so ', 'on.'),
  ),
);

export const agents: Agent[] = [
  talker,
  showcase,
  { ...showcase, manifest: { ...showcase.manifest, name: 'durable' }, options: { durable: true } },
  ticks,
];

/** An official client that goes on where its streams are cut. */
interface CutClient {
  readonly name: string;
  /** A message, a question and its answer. Resolves to all that the client has then, and that is the same of each run. */
  talk(url: string, send: typeof fetch): Promise<unknown>;
  /** How its streams may be cut, and where its requests may fail as well. */
  readonly cuts: readonly Cut[];
  readonly repeats: boolean;
}

/** The same text for each run: ids are numbered, and times left out. */
function withoutIds(value: unknown): string {
  const ids: string[] = [];
  return JSON.stringify(value)
    .replace(/[\da-f]{8}-[\da-f-]{27}(\.\d+)?/g, (id) => `id ${ids.includes(id) ? ids.indexOf(id) : ids.push(id) - 1}`)
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'then');
}

const a2a = bindings.map(
  (binding): CutClient => ({
    name: `A2A, ${binding}`,
    cuts: ['break'],
    repeats: true,
    talk: async (url, send) => {
      const client = await clientOf(`${url}/a2a/talker/`, binding, send);
      const updates: unknown[] = [];
      let taskId = '';
      for (const text of ['hi', 'yes'])
        for await (const update of followTask(client, message(text, { taskId, contextId: 'c' }), 1)) {
          if (update.payload?.$case === 'task') taskId = update.payload.value.id;
          updates.push(update);
        }
      return withoutIds(updates);
    },
  }),
);

const agUi: CutClient = {
  name: 'AG-UI, by the example of a reconnecting agent',
  cuts: ['break'],
  repeats: true,
  talk: async (url, send) => {
    const initialMessages = [{ id: 'u1', role: 'user' as const, content: 'hi' }];
    const own = new ReconnectingAgent({ url: `${url}/ag-ui/talker`, fetch: send, initialMessages }, 1);
    await own.runAgent();
    const interruptId = own.pendingInterrupts[0]?.id ?? '';
    await own.runAgent({ resume: [{ interruptId, status: 'resolved', payload: 'yes' }] });
    return withoutIds([own.messages, own.state]);
  },
};

const mcp = mcpClients.map(
  ([name, open]): CutClient => ({
    name,
    cuts: ['break'],
    repeats: false,
    talk: async (url, send) => {
      const answer = () => ({ action: 'accept', content: { answer: 'yes' } }) as const;
      const client = await open(url, { answer, fetch: send });
      const seen: number[] = [];
      const onprogress = (one: { progress: number }) => void seen.push(one.progress);
      const { content } = await client.call('talker', { input: 'hi' }, { onprogress });
      await client.close();
      // A client that repeats its call with the reply counts a round of its own.
      const own = seen.filter((n) => n > 1);
      expect([...new Set(own)]).toEqual(own);
      return withoutIds(content);
    },
  }),
);

const chatOf = (version: Version, name: string, url: string, send: typeof fetch) => {
  const fetch = resumingFetch({ fetch: send, delay: 1 });
  return openChat(version, { api: `${url}/ai/${name}`, id: crypto.randomUUID(), fetch });
};
const aiSdk = [...versionNames.map((version) => [version, 'showcase'] as const), ['ai', 'durable'] as const].map(
  ([version, name]): CutClient => ({
    name: `AI SDK, ${version} over resumingFetch, ${name}`,
    cuts: ['break', 'end'],
    repeats: true,
    talk: async (url, send) => JSON.stringify(shown(await turnOf(chatOf(version, name, url, send)))),
  }),
);
const tokens: CutClient = {
  name: 'AI SDK, ai over resumingFetch, token by token',
  cuts: ['break'],
  repeats: true,
  talk: async (url, send) => {
    const chat = chatOf('ai', 'ticks', url, send);
    await chat.sendMessage({ text: '40' });
    return JSON.stringify([chat.error, chat.lastMessage?.parts.at(-1)?.text]);
  },
};

export const cutClients: readonly CutClient[] = [...a2a, agUi, ...mcp, ...aiSdk, tokens];

/** Expects that a client has the same, wherever its streams are cut: after a number of bytes, and after others. */
export async function expectTheSame(
  { talk, cuts, repeats }: CutClient,
  urls: readonly string[],
  step: number,
): Promise<void> {
  const [url = ''] = urls;
  const whole = await talk(url, fetch);
  expect(whole).toMatch(/You said|38 39/);
  let count = 0;
  let streams = 0;
  // Before its first frame, a client of MCP has no id to go on with.
  for (let bytes = repeats ? 1 : 170; bytes < 2_500; bytes += step) {
    const after = [bytes, bytes, 170 + (bytes % 400), 700, 170 + (bytes % 90)];
    const send = cutting(urls, repeats ? after.toSpliced(2, 0, -1, -2) : after, cuts[streams % cuts.length]);
    expect(await talk(url, send.fetch), `cut after ${bytes} bytes`).toBe(whole);
    count += send.cuts();
    streams += 1;
  }
  expect(count).toBeGreaterThan(streams);
}
