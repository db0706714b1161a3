import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { agentFile, getJson, projectFolder, startRivulet } from './server-project.ts';

const files = { 'agents/echo.js': agentFile('echo') };
const args = ['serve', '--port', '0', '--log-level', 'info'];

it.concurrent.for(['SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGTRAP', 'SIGQUIT', 'SIGUSR2'] as const)(
  '%s ends the server as it ends any process',
  async (signal, test) => {
    const server = startRivulet(projectFolder(files, test), args, test);
    await server.url();
    expect(await server.stop(signal)).toBe(signal);
  },
);

it.concurrent('SIGHUP has no effect on a server without a terminal, so that nohup keeps it', async (test) => {
  const server = startRivulet(projectFolder(files, test), args, test);
  const url = await server.url();
  server.child.kill('SIGHUP');
  await eventually(() => expect(server.out + server.err).toContain('SIGHUP has no effect without a terminal'));
  expect(await getJson(`${url}/health`)).toBeDefined();
  expect(await server.stop()).toBe(0);
  expect(server.out + server.err).toContain('SIGTERM: the server stops');
});

/** Starts the server at a terminal of its own, closes the terminal, and prints how the server has ended. */
const atTerminal = `
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
text = b''
while b'is listening at' not in text:
    text += os.read(terminal, 65536)
os.close(terminal)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
`;

it.concurrent('a closed terminal ends the server', async (test) => {
  const folder = projectFolder(files, test);
  const main = resolve(import.meta.dirname, '../../dist/cli/main.js');
  const python = spawn('python3', ['-c', atTerminal, process.execPath, main, 'serve', '--port', '0', '--no-docs'], {
    cwd: folder,
  });
  test.onTestFinished(() => void python.kill('SIGKILL'));
  let printed = '';
  python.stdout.setEncoding('utf8').on('data', (chunk) => (printed += chunk));
  await once(python, 'close');
  expect(Number(printed)).toBeLessThanOrEqual(1);
});
