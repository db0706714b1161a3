import { messageOf } from '../core/json.ts';

/** Exit codes of the process, for scripts; `docs/cli.md` lists the same. */
export const exit = {
  completed: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  awaiting: 4,
  cancelled: 5,
  interrupted: 130,
} as const;

const meanings: Readonly<Record<keyof typeof exit, string>> = {
  completed: 'the run completed',
  failed: 'the run failed, an artifact could not be saved, or the server could not start',
  usage: 'wrong usage, or the server refused the request (unknown agent, unknown run)',
  unreachable: 'the server cannot be reached, or the connection could not be restored',
  awaiting: 'the run awaits a reply, and there is no terminal to ask on',
  cancelled: 'the run was cancelled elsewhere',
  interrupted: 'ended by Ctrl-C',
};

export const exitCodesHelp = [
  '',
  'Exit codes:',
  ...Object.entries(meanings).map(([name, does]) => `  ${String(Reflect.get(exit, name)).padEnd(5)}${does}`),
].join('\n');

/** A wrong option or argument that is found only when it is used, such as a file that does not exist. Exits with `usage`. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const fileProblems: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'is a folder; give a file',
  EACCES: 'may not be read by this user',
};

/** Why a file that an option names cannot be read. */
export const fileProblem = (error: unknown): string => fileProblems[Object(error).code] ?? messageOf(error);
