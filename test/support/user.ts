import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { Output } from './output.ts';

type Variables = Readonly<Record<string, string>>;

/** The variables of a user, without those that npm sets for this test. */
const variables = (more: Variables): Variables => ({
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  NO_COLOR: '1',
  CI: 'true',
  ...more,
});

/** Runs a command as a user does, and returns what it prints. @throws Error with that, if the command fails */
export const runAsUser = (cwd: string, [program = '', ...args]: string[], more: Variables = {}): Promise<string> =>
  new Promise((resolve, reject) => {
    execFile(program, args, { cwd, env: variables(more) }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout + stderr);
      else reject(new Error(`${error.message}\n${stdout}${stderr}`));
    });
  });

/** Runs lines of shell as a user does. Returns what they print in its order, as a terminal shows it. */
export const typeAsUser = (cwd: string, lines: string, more: Variables = {}): Promise<string> =>
  runAsUser(cwd, ['bash', '-c', `set -euo pipefail; exec 2>&1\n${lines}`], more);

export interface UsersServer {
  readonly url: string;
  /** All that was printed until the server listened. */
  readonly printed: string;
  stop(): Promise<void>;
}

/**
 * Starts a server with a line of shell, as a user does, on a free port. It ends with the test at the latest.
 * @throws Error if it ends before it listens
 */
export async function serveAsUser(cwd: string, line: string): Promise<UsersServer> {
  // A group of its own, which also has the processes between the shell and the server.
  const shell = spawn('bash', ['-c', line], { cwd, env: variables({ PORT: '0' }), detached: true });
  const closed = once(shell, 'close');
  const stop = async (): Promise<void> => {
    if (shell.exitCode === null && shell.signalCode === null) process.kill(-Number(shell.pid), 'SIGTERM');
    await closed;
  };
  onTestFinished(stop);
  const output = new Output(shell);
  await output.has('Rivulet is listening at ');
  // The start-up text is one write, and ends with this command.
  await output.has('curl ');
  const [, url = ''] = /listening at (http:\S+)/.exec(output.text) ?? [];
  return { url, printed: output.text, stop };
}
