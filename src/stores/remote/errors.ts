/**
 * What an error says about a commit.
 * - `unanswered`: the server did not answer; it may have applied the commit.
 * - `refused`: the server applied nothing, for a reason that may pass.
 * - `too_large`: as `refused`, and the size of the commit may be the reason.
 * - `rejected`: the server applied nothing and never will, because of a value in one of the writes.
 */
export type CommitFailure = 'unanswered' | 'refused' | 'too_large' | 'rejected';

/** Whether the system or the network failed, as opposed to the server, which would have answered. */
export function isNetworkError(error: unknown): boolean {
  // A host name with several addresses, none of which answers.
  if (error instanceof AggregateError) return error.errors.some(isNetworkError);
  if (!(error instanceof Error) || !('code' in error)) return false;
  // ECONNREFUSED, EAI_AGAIN and so on. A code that begins with ERR_ is a programming error.
  return /^E(?!RR_)[A-Z0-9_]+$/.test(String(error.code));
}
