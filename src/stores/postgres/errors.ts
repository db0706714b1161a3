import { DatabaseError } from 'pg';
import { type CommitFailure, isNetworkError } from '../remote/errors.ts';

/** Errors of the client where a connection was lost, or there is none. */
const clientMessages =
  /^(Connection terminated|Query read timeout|timeout ex(ceeded|pired)|Client (has encountered|was closed))/;

/** Connection errors (class 08), a server that stops or starts, an idle session that was ended, a read-only replica. */
const unavailable = /^(08...|57P0[1235]|25006)$/;
/** A statement time-out, no memory, and an internal error, which reports an allocation that is too large. */
const tooLarge = /^(57014|53200|XX000)$/;
/** Invalid values (class 22), violated constraints (23) and views (44), exceeded limits (54), and refusals of triggers. */
const invalidValue = /^((22|23|44|54)...|P0001)$/;

/** Whether PostgreSQL is unavailable at present. Such an error says nothing about the statement. */
export function isPostgresUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseError)
    return unavailable.test(error.code ?? '') || /^(53300|57014)$/.test(error.code ?? '');
  return error instanceof Error && (clientMessages.test(error.message) || isNetworkError(error));
}

/** What an error says about a commit. Where PostgreSQL answers with an error, it has rolled back the transaction. */
export function classifyPostgresError(error: unknown): CommitFailure {
  if (!(error instanceof DatabaseError)) {
    // The commit could not be encoded: its text exceeds the longest string.
    return error instanceof RangeError || error instanceof TypeError ? 'rejected' : 'unanswered';
  }
  const { code = '' } = error;
  if (unavailable.test(code)) return 'unanswered';
  if (tooLarge.test(code)) return 'too_large';
  return invalidValue.test(code) ? 'rejected' : 'refused';
}

/**
 * An error for the log. A function is missing where a newer Rivulet has upgraded the schema while this node ran: the node can
 * no longer write, and its runs go on elsewhere when it has stopped.
 */
export const explained = (error: unknown): unknown =>
  error instanceof DatabaseError && error.code === '42883'
    ? new Error('another version of Rivulet has replaced the functions of the schema; stop this node', { cause: error })
    : error;
