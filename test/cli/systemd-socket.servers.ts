import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { takeInheritedSocket } from '../../src/cli/serving/listen.ts';
import { agentFile, projectFolder } from './server-project.ts';

const main = resolve(import.meta.dirname, '../../dist/cli/main.js');

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** For each line that it reads, starts a server with the socket, and prints its process. */
const starter = `while read -r _; do
  (export LISTEN_PID=$BASHPID LISTEN_FDS=1; exec "${process.execPath}" "${main}" serve --store memory: --no-docs) &
  echo "process $!"
done`;

/** A listening socket that a shell holds, as systemd does, and servers that inherit it. */
async function socketUnit(host: string) {
  const server = createServer();
  server.listen({ host, port: 0 });
  await once(server, 'listening');
  const address = server.address();
  const handle: unknown = Reflect.get(server, '_handle');
  const fd = typeof handle === 'object' && handle !== null ? Number(Reflect.get(handle, 'fd')) : -1;
  const cwd = projectFolder({ 'agents/a.js': agentFile('a') });
  const shell = spawn('bash', ['-c', starter], { cwd, stdio: ['pipe', 'pipe', 'pipe', fd], detached: true });
  onTestFinished(() => void process.kill(-(shell.pid ?? 0), 'SIGKILL'));
  // From now on only the shell and the servers have the socket; this process would accept connections, too.
  server.close();
  const outputs = [shell.stdout, shell.stderr].filter((stream) => stream !== null);
  let text = '';
  const printed = async (pattern: RegExp): Promise<string> => {
    while (!pattern.test(text)) {
      await Promise.race(outputs.map((stream) => once(stream, 'data')));
    }
    return pattern.exec(text)?.[1] ?? '';
  };
  for (const stream of outputs) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
  }
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    printed,
    /** Starts a server; resolves to its process. */
    async start(): Promise<number> {
      text = '';
      shell.stdin?.write('\n');
      return Number(await printed(/process (\d+)/));
    },
  };
}

it('serves on the socket of systemd, and a restart refuses no connection', async () => {
  const { url, start, printed } = await socketUnit('127.0.0.1');
  const first = await start();
  expect(await printed(/listening at (http:\S+)/)).toBe(url);
  // Its connection is not kept: the request below would be sent on it, where its end has not been read yet.
  expect((await fetch(`${url}/health`, { headers: { connection: 'close' } })).status).toBe(200);
  process.kill(first, 'SIGTERM');
  // While it stops, the connection waits for the next process.
  while (isAlive(first)) await setTimeout(5);
  const between = fetch(`${url}/health`);
  await start();
  expect((await between).status).toBe(200);
});

it('refuses a socket that is open to others where host is loopback', async () => {
  const { start, printed } = await socketUnit('0.0.0.0');
  await start();
  await printed(/systemd opened the socket at 0\.0\.0\.0, but host is 127\.0\.0\.1; set HOST/);
});

it('takes only a socket for this process, and keeps the variables from programs of agents', () => {
  const env: NodeJS.ProcessEnv = { LISTEN_PID: String(process.pid), LISTEN_FDS: '1', LISTEN_FDNAMES: 'x' };
  expect(takeInheritedSocket(env)).toBe(3);
  expect(env).toEqual({});
  expect(takeInheritedSocket({ LISTEN_PID: '1', LISTEN_FDS: '1' })).toBe(undefined);
  expect(takeInheritedSocket({})).toBe(undefined);
  expect(() => takeInheritedSocket({ LISTEN_PID: String(process.pid), LISTEN_FDS: '2' })).toThrow('2 addresses');
});
