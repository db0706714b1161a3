import { DatabaseError } from 'pg';
import type { Verdict } from '../remote/deliveries.ts';
import { networkFailed } from '../remote/outage.ts';

/** What the client rejects with where a connection was lost, or there is none. */
const messages =
  /^(Connection terminated|Query read timeout|timeout ex(ceeded|pired)|Client (has encountered|was closed))/;

/** Connections (class 08), a server that ends or starts, a session that was idle, and a replica, which only reads. */
const away = /^(08...|57P0[1235]|25006)$/;
/** A statement that took too long, no memory, and an internal error, as which an allocation that is too large is told. */
const tooMuch = /^(57014|53200|XX000)$/;
/** Values: invalid ones (class 22), those that are there already (23), and those beyond a limit (54). */
const values = /^(22|23|54)...$/;

/** Whether an error means that PostgreSQL cannot be asked at present, and nothing about what it was asked for. */
export function postgresAway(error: unknown): boolean {
  if (error instanceof DatabaseError) return away.test(error.code ?? '') || /^(53300|57014)$/.test(error.code ?? '');
  return error instanceof Error && (messages.test(error.message) || networkFailed(error));
}

/** What an error says about a commit. Where PostgreSQL answers with an error, it has undone the transaction. */
export function postgresVerdict(error: unknown): Verdict {
  if (!(error instanceof DatabaseError)) {
    // It could not even be written down, as a text that is longer than a text can be.
    return error instanceof RangeError || error instanceof TypeError ? 'rejected' : 'unanswered';
  }
  const { code = '' } = error;
  if (away.test(code)) return 'unanswered';
  if (tooMuch.test(code)) return 'too_much';
  return values.test(code) ? 'rejected' : 'refused';
}
