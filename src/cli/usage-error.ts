/** Something on the command line that only shows when it is used: a file that is not there, say. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
