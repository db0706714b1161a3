/** Exit codes of the process, for scripts; `docs/cli.md` and `rivulet --help` list the same. */
export const exit = {
  completed: 0,
  /** The run failed, an artifact could not be saved, or the server could not start. */
  failed: 1,
  /** An option or argument is wrong, or the server refused the request. */
  usage: 2,
  /** The server cannot be reached, or the other side is not a Rivulet server. */
  unreachable: 3,
  /** The run awaits a reply, and stdin is not a terminal. */
  awaiting: 4,
  /** The run was cancelled, but not from this terminal. */
  cancelled: 5,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

export const exitCodesHelp = `
Exit codes:
  0    the run completed
  1    the run failed, an artifact could not be saved, or the server could not start
  2    wrong usage, or the server refused the request (unknown agent, unknown run)
  3    the server cannot be reached, or the connection could not be restored
  4    the run awaits a reply, and there is no terminal to ask on
  5    the run was cancelled elsewhere
  130  ended by Ctrl-C`;

/** A wrong option or argument that is found only when it is used, such as a file that does not exist. Exits with `usage`. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
