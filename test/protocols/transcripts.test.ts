import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sessionIdFor } from '../../src/engine/ids.ts';
import { Projector } from '../../src/http/sse/projection.ts';
import { endOf, uiStreamFor } from '../../src/protocols/ai-sdk/projection.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { echo } from '../support/agents.ts';
import { busyLogs } from '../support/logs.ts';
import { serveAll } from '../support/serve.ts';
import { type Chat, type ChatMessage, openChat } from './ai-sdk/chats.ts';
import { idle, RecordedRun, until } from './recorded-runs.ts';

// `FC_RUNS=2000 npx vitest run test/protocols/transcripts` tries more sessions. The other protocols have the
// same test in `open-runs.test.ts`.
const numRuns = Number(process.env.FC_RUNS ?? 40);

/** A run of a chat, and what the frames of its log are to the chat. */
interface Recorded {
  readonly run: RecordedRun;
  readonly frames: readonly string[];
  readonly end: string;
}

const store = new MemoryStore();
const served = await serveAll([echo], {
  store,
  dispatcher: idle,
  protocols: ['ai-sdk'],
  docs: false,
  playground: false,
});

async function record(chat: string, n: number, log: readonly string[], approvals: boolean): Promise<Recorded> {
  const request = { protocol: 'ai-sdk', ...(approvals && { metadata: { approvals } }) };
  const run = new RecordedRun(store, sessionIdFor(chat), log, n, request);
  await run.store(log.length);
  const projector = new Projector(uiStreamFor({ approvals, joins: false }));
  const frames = run.log.flatMap((line, index) => projector.take(line, index + 1));
  return { run, frames, end: endOf(projector.state) };
}

/** A chat whose page has stayed: it has got the streams of all runs, one after the other. */
async function stayed(id: string, runs: readonly Recorded[]): Promise<Chat> {
  let body = '';
  const fetch = async (): Promise<Response> => new Response(body);
  const chat = openChat('ai', { api: 'http://unused/', id, sends: false, fetch });
  for (const [n, { frames, end }] of runs.entries()) {
    body = [...frames, end].join('');
    await chat.sendMessage({ id: `u${n}`, parts: [{ type: 'text', text: `Say ${n}` }] });
  }
  return chat;
}

/** What a page loads: the transcript, in pages of some turns, and the stream after it. */
async function reloaded(id: string, runs: readonly Recorded[], limit: number): Promise<Chat> {
  const messages: ChatMessage[] = [];
  for (let query: string | undefined = `?limit=${limit}`; query !== undefined; ) {
    const page: { messages: ChatMessage[]; next_cursor?: string } = await (
      await served.get(`/ai/echo/${id}${query}`)
    ).json();
    messages.unshift(...page.messages);
    query = page.next_cursor === undefined ? undefined : `?limit=${limit}&cursor=${page.next_cursor}`;
  }
  const { frames = [], run } = runs.at(-1) ?? {};
  const last = /\nid: .*\n\n$/.exec(frames.at(-1) ?? '')?.[0] ?? '';
  const isLive = run?.status === 'created' || run?.status === 'in-progress';
  const leaves: typeof fetch = async (url, init) => until((seen) => seen.includes(last), await fetch(url, init));
  const api = `${served.url}/ai/echo`;
  const chat = openChat('ai', { api, id, messages, sends: false, ...(isLive && { fetch: leaves }) });
  await chat.resumeStream();
  return chat;
}

/**
 * Without the ids that a chat gives its reasoning, and with the decision that it keeps of an approval. A step without parts is
 * left out: a chat takes it up with the first part.
 */
const drawn = ({ messages }: Chat): unknown =>
  JSON.parse(JSON.stringify(messages)).map(({ parts, ...message }: ChatMessage) => ({
    ...message,
    parts: parts
      .slice(0, 1 + parts.findLastIndex(({ type }) => type !== 'step-start'))
      .map(({ id, approval, ...part }) => ({
        ...part,
        ...(part.type !== 'reasoning' && id !== undefined && { id }),
        ...(approval !== undefined && { approval: decided(approval, part.state) }),
      })),
  }));

const decided = (approval: unknown, state: string | undefined): object => ({
  ...Object(approval),
  ...(state === 'output-available' && { approved: true }),
  ...(state === 'output-denied' && { approved: false }),
});

const sessions = fc.array(fc.record({ log: busyLogs, cut: fc.option(fc.nat()), approvals: fc.boolean() }), {
  minLength: 1,
  maxLength: 4,
});

describe('a page that loads a chat', () => {
  it('has what the page that stayed has, with any number of runs that are not final', async () => {
    let chats = 0;
    await fc.assert(
      fc.asyncProperty(sessions, fc.integer({ min: 1, max: 5 }), async (given, limit) => {
        chats += 1;
        const id = `chat ${chats}`;
        const runs: Recorded[] = [];
        for (const [n, { log, cut, approvals }] of given.entries()) {
          // Each log, or its beginning: then the run is under way, or waits.
          const lines = cut === null ? log : log.slice(0, 1 + (cut % log.length));
          runs.push(await record(id, n, lines, approvals));
        }
        expect(drawn(await reloaded(id, runs, limit))).toEqual(drawn(await stayed(id, runs)));
      }),
      { numRuns },
    );
  });
});
