import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { echo, never, Tap } from '../../support/agents.ts';
import { finished, serveAll } from '../../support/serve.ts';
import { request } from './modern.ts';

const tap = new Tap();
const served = await serveAll([echo, never, tap.agent]);

const session = (): string => `${crypto.randomUUID()}.noforms`;
const quick = { accept: 'application/json' };
const streams = { accept: 'application/json, text/event-stream' };

/** Sends a call of the older era. Returns its run once the server has it. */
async function call(
  sessionId: string,
  { id = 1, name = 'echo', input = 'hi', headers = quick }: CallOptions = {},
): Promise<Response> {
  // With a progress token, a client that reads streams gets one at once.
  const body = request('tools/call', { name, arguments: { input }, _meta: { progressToken: 1 } }, id);
  return served.post('/mcp', body, { 'mcp-session-id': sessionId, ...headers });
}

interface CallOptions {
  readonly id?: unknown;
  readonly name?: string;
  readonly input?: string;
  readonly headers?: Record<string, string>;
}

const runOf = (response: Response): string | null => response.headers.get('run-id');
const textIn = async (response: Response): Promise<string> => (await response.json()).result.content[0].text;

describe('an id that comes again in a session', () => {
  it('is a new call once the first one is answered', async () => {
    const sessionId = session();
    const [one, two] = [await call(sessionId), await call(sessionId)];
    expect(runOf(two)).not.toBe(runOf(one));
    expect(await textIn(await call(sessionId, { input: 'other' }))).toBe('other');
  });

  it('is the same call while that is open, and another call where it asks for something else', async () => {
    const sessionId = session();
    const open = { name: 'tap', headers: streams };
    const [one, two] = [await call(sessionId, open), await call(sessionId, open)];
    expect(runOf(two)).toBe(runOf(one));
    expect(await textIn(await call(sessionId, { input: 'other' }))).toBe('other');
    await tap.started();
    tap.push('done');
    tap.complete();
    expect(await one.text()).toContain('done');
    expect(await two.text()).toContain('done');
  });

  it('cancels the call that it stood for last', async () => {
    const sessionId = session();
    await call(sessionId);
    const open = await call(sessionId, { name: 'never', headers: streams });
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    await served.post('/mcp', cancel, { 'mcp-session-id': sessionId, ...quick });
    expect((await finished(served, String(runOf(open)))).status).toBe('cancelled');
    await open.body?.cancel();
  });

  it('goes on after the event that a Last-Event-ID names', async () => {
    const sessionId = session();
    const first = await call(sessionId, { headers: streams });
    const [, eventId = ''] = /^id: (.+)$/m.exec(await first.text()) ?? [];
    const again = await call(sessionId, { headers: { ...streams, 'last-event-id': eventId } });
    expect(runOf(again)).toBe(runOf(first));
    expect(await again.text()).toContain('"result"');
    const other = await call(sessionId, { id: 2, headers: { ...streams, 'last-event-id': eventId } });
    expect(other.status).toBe(400);
  });
});

it('ids of which only the end differs are two calls', async () => {
  const sessionId = session();
  const ids = ['a', 'b'].map((end) => `${'\u0001'.repeat(199)}${end}`);
  const [one, two] = await Promise.all(ids.map((id) => call(sessionId, { id, name: 'echo' })));
  expect(one && runOf(one)).not.toBe(two && runOf(two));
});

describe('a client that takes a session up, and counts its ids anew, calls its own tool', () => {
  it('@modelcontextprotocol/client', async () => {
    const open = async (sessionId?: string) => {
      const url = new URL(`${served.url}/mcp`);
      const transport = new StreamableHTTPClientTransport(url, sessionId === undefined ? {} : { sessionId });
      const client = new Client({ name: 'test', version: '1.0.0' });
      await client.connect(transport);
      onTestFinished(() => client.close());
      return { client, transport };
    };
    const first = await open();
    const again = await open(first.transport.sessionId);
    expect(again.transport.sessionId).toBe(first.transport.sessionId);
    const texts: [string, unknown][] = [];
    for (const { client } of [again, first, await open(first.transport.sessionId)]) {
      for (const input of ['1', '2', '3']) {
        const text: string = `${input} ${texts.length}`;
        const { content } = await client.callTool({ name: 'echo', arguments: { input: text } });
        texts.push([text, content]);
      }
    }
    expect(texts).toEqual(texts.map(([text]) => [text, [{ type: 'text', text }]]));
  });

  it('@modelcontextprotocol/sdk 1', async () => {
    const open = async (sessionId?: string) => {
      const url = new URL(`${served.url}/mcp`);
      const transport = new Transport1(url, sessionId === undefined ? {} : { sessionId });
      const client = new Client1({ name: 'test', version: '1.0.0' });
      await client.connect(transport as Parameters<typeof client.connect>[0]);
      onTestFinished(() => client.close());
      return { client, transport };
    };
    const first = await open();
    const runs = new Set();
    for (const { client } of [await open(first.transport.sessionId), await open(first.transport.sessionId)]) {
      const { _meta } = await client.callTool({ name: 'echo', arguments: { input: 'the same' } });
      runs.add(_meta?.['rivulet/run_id']);
    }
    expect(runs.size).toBe(2);
  });
});
