import { once } from 'node:events';
import { connect } from 'node:net';
import { concat, defer, interval, map, NEVER, of } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createRuntime, createServer, defineAgent } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { durable } from '../support/agents.ts';
import { ask, finished, listen, serve } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

/** Works without end in its first life, and ends in the second. */
function twoLives() {
  let lives = 0;
  return durable(
    'works',
    () =>
      concat(
        of('one '),
        defer(() => (++lives === 1 ? NEVER : of('two'))),
      ),
    { on_disconnect: 'cancel' },
  );
}

const message = { role: 'user', content: 'hi' };
const aiSdk: [string, object] = [
  '/ai/works',
  { id: 'c', messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'hi' }] }] },
];
const requests: [string, string, object][] = [
  ['its own API, as a stream', '/runs', ask('works', 'hi', { mode: 'stream' })],
  ['its own API, which waits', '/runs', ask('works', 'hi', { mode: 'sync' })],
  ['AI SDK', ...aiSdk],
  ['AG-UI', '/ag-ui/works', { threadId: 't', runId: 'r', messages: [{ id: 'm', ...message }] }],
  ['Chat Completions', '/v1/chat/completions', { model: 'works', stream: true, messages: [message] }],
  ['Responses', '/v1/responses', { model: 'works', stream: true, input: 'hi' }],
  ['A2A', '/a2a/works/message:stream', { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] } }],
];

/** The run of the only request, once it has output. */
async function working(store: MemoryStore): Promise<string> {
  for (;;) {
    const [row] = await store.runs({}, undefined, 1);
    if (row !== undefined && row.last >= 3) return row.run_id;
    await turn();
  }
}

/** Time in which a disconnect would have its effect. */
async function aMoment(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 5));
  for (let turns = 0; turns < 20; turns += 1) await turn();
}

// Over HTTP/1.0, the response is told later than the socket that this is gone.
it('a client of HTTP/1.0 that leaves while it is written to cancels its run', async () => {
  const says = defineAgent(
    { name: 'works', description: 'Says numbers.' },
    () => interval(1).pipe(map((n) => `${n} `)),
    { on_disconnect: 'cancel' },
  );
  const store = new MemoryStore();
  const served = await serve([says], { store });
  const { port } = new URL(served.url);
  const [path, body] = aiSdk;
  const text = JSON.stringify(body);
  const head = `POST ${path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
  for (let n = 0; n < 10; n += 1) {
    const socket = connect(Number(port), '127.0.0.1').resume();
    socket.write(`${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
    await once(socket, 'data');
    socket.destroy();
  }
  await expect.poll(async () => (await store.runs({ status: 'cancelled' }, undefined, 20)).length).toBe(10);
});

describe('a server that stops', () => {
  it.each(requests)(
    'leaves a run to the next one, although its client would cancel it by leaving: %s',
    async (_, path, body) => {
      const store = new MemoryStore();
      const agent = twoLives();
      const served = await listen([agent], { store });
      const answer = served.post(path, body, { 'a2a-version': '1.0' }).then((response) => response.text());
      answer.catch(() => undefined);
      const run_id = await working(store);
      await served.app.close();
      await aMoment();
      const next = await serve([agent], { store });
      expect(await finished(next, run_id)).toMatchObject({ status: 'completed' });
    },
  );

  it.each(requests)('leaves a run to its runtime, which goes on: %s', async (_, path, body) => {
    const store = new MemoryStore();
    const runtime = await createRuntime({ agents: [twoLives()], store, limits: { shutdownGrace: 0 } });
    onTestFinished(() => runtime.close());
    const app = await createServer({ runtime });
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
    fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
      .then((response) => response.text())
      .catch(() => undefined);
    const run_id = await working(store);
    await app.close();
    await aMoment();
    expect((await store.run(run_id))?.status).toBe('in-progress');
  });
});
