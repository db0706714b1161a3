/** What the process says when it ends, for scripts; `docs/cli.md` and `rivulet --help` list the same. */
export const exit = {
  completed: 0,
  /** The run failed, an artifact could not be saved, or a server could not start. */
  failed: 1,
  /** A wrong option or argument, or one that the server refuses: no such agent, say. */
  usage: 2,
  /** The server cannot be reached, does not come back, or is no Rivulet. */
  unreachable: 3,
  /** The run asks, and nobody is there to answer. */
  awaiting: 4,
  /** Somebody else cancelled the run. */
  cancelled: 5,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

export const exitCodesHelp = `
Exit codes:
  0    the run completed
  1    the run failed, an artifact could not be saved, or the server could not start
  2    wrong usage, or the server refused: no such agent, no such run
  3    the server cannot be reached, or did not come back
  4    the run asks something, and nobody is there to answer
  5    somebody else cancelled the run
  130  ended by Ctrl-C`;
