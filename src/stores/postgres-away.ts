import { DatabaseError } from 'pg';
import { networkFailed } from './outage.ts';

/** What the client rejects with where a connection was lost, or there is none. */
const messages =
  /^(Connection terminated|Query read timeout|timeout ex(ceeded|pired)|Client (has encountered|was closed))/;

// Connections (class 08), a server that ends, starts or ends sessions that were idle (57P01 to 57P05, without 57P04:
// the database was dropped), too many connections, a statement that took too long, and a replica, which only reads.
const codes = /^(08...|57P0[1235]|53300|57014|25006)$/;

/** Whether an error means that PostgreSQL cannot be asked at present, and nothing about what it was asked for. */
export function postgresAway(error: unknown): boolean {
  if (error instanceof DatabaseError) return codes.test(error.code ?? '');
  return error instanceof Error && (messages.test(error.message) || networkFailed(error));
}
