import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { concat, map, NEVER, range } from 'rxjs';
import { expect, it, onTestFinished } from 'vitest';
import { createRuntime, createServer } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { durable } from '../support/agents.ts';
import { ask } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

// 60 MB: more than the buffers of both sockets take.
const chunk = 'x'.repeat(256 * 1024);
const chunks = 240;

/** Resolves when the client takes nothing more of what waits for it. */
async function stalled(socket: Socket): Promise<void> {
  for (let turns = 0, written = 0; turns < 200 || socket.writableLength === 0; turns += 1) {
    if (socket.bytesWritten !== written) turns = 0;
    written = socket.bytesWritten;
    await turn();
  }
}

// This takes five seconds.
it('a server that stops closes the connection of a reader that reads nothing, and leaves its run', async () => {
  const talks = durable('talks', () => concat(range(0, chunks).pipe(map(() => chunk)), NEVER), {
    on_disconnect: 'cancel',
  });
  const store = new MemoryStore();
  const runtime = await createRuntime({ agents: [talks], store, limits: { shutdownGrace: 0 } });
  onTestFinished(() => runtime.close());
  const app = await createServer({ runtime });
  const accepted = once(app.server, 'connection');
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }));
  const client = connect(Number(port), '127.0.0.1').pause();
  client.on('error', () => undefined);
  const body = JSON.stringify(ask('talks', 'hi', { mode: 'stream' }));
  const head = 'POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  client.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  const [server]: Socket[] = await accepted;
  if (server === undefined) throw new Error('no connection');
  await stalled(server);
  const told = once(server, 'close');
  await app.close();
  await told;
  // Time in which a disconnect would have its effect.
  for (let turns = 0; turns < 50; turns += 1) await turn();
  expect((await store.runs({}, undefined, 2)).map(({ status }) => status)).toEqual(['in-progress']);
  client.destroy();
});
