import { ReplyError } from 'ioredis';
import { type CommitFailure, isNetworkError } from '../remote/errors.ts';

/** Errors of the client where a connection was lost, or there is none. */
const clientErrors = new Set(['MaxRetriesPerRequestError', 'AbortError', 'ParserError', 'ClusterAllFailedError']);
/** Our own, where no connection to a cluster can be made. */
export const noNode = 'None of its nodes answers';
const clientMessages =
  /^(Connection is closed|Stream isn't writeable|Socket timeout|Cluster isn't ready|Too many Cluster redirections|None of startup nodes|Node is disconnected)/;

// Error codes of Redis. The text before them in errors of scripts differs between versions.

/** The server is starting, has become a replica, or has no primary. */
const unavailable = /(?:^|: -?)(?:LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/;
/** A script found an invalid value: REJECTED is our own code; the others mean a key with a value of another type. */
const invalidValue = /(?:^|: -?)(?:REJECTED|WRONGTYPE)\b|XADD is equal or smaller/;

/** Whether Redis is unavailable at present. Such an error says nothing about the command. */
export function isRedisUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof ReplyError) return unavailable.test(error.message);
  return clientErrors.has(error.name) || clientMessages.test(error.message) || isNetworkError(error);
}

/**
 * What an error says about a commit. Where Redis answers with an error, it has applied nothing: NOREPLICAS, BUSY,
 * MISCONF, OOM, NOAUTH and so on come before a script has written anything.
 */
export function classifyRedisError(error: unknown): CommitFailure {
  if (!(error instanceof Error) || isRedisUnavailable(error)) return 'unanswered';
  if (error instanceof ReplyError) return invalidValue.test(error.message) ? 'rejected' : 'refused';
  // The commit was not sent: its text exceeds the longest string, or what Redis accepts.
  return error instanceof RangeError || error instanceof TypeError ? 'rejected' : 'unanswered';
}
