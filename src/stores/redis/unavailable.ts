import { ReplyError } from 'ioredis';
import type { Verdict } from '../remote/deliveries.ts';
import { networkFailed } from '../remote/outage.ts';

/** What the client rejects with where a connection was lost, or there is none. */
const names = new Set(['MaxRetriesPerRequestError', 'AbortError', 'ParserError']);
const messages = /^(Connection is closed|Stream isn't writeable|Socket timeout)/;

// Words of Redis; what precedes them when they come out of a script differs between its versions.

/** A server that starts, has become a replica, or looks for its primary: the same as one that is away. */
const starting = /(?:^|: -?)(?:LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/;
/** What a script says against a value: our own word, and what is of another type than this layout has it. */
const damaged = /(?:^|: -?)(?:REJECTED|WRONGTYPE)\b|XADD is equal or smaller/;

/** Whether an error means that Redis cannot be asked at present, and nothing about what it was asked for. */
export function redisAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof ReplyError) return starting.test(error.message);
  return names.has(error.name) || messages.test(error.message) || networkFailed(error);
}

/**
 * What an error says about a commit. Redis has taken nothing where it answers with an error: NOREPLICAS, BUSY, MISCONF,
 * OOM, NOAUTH and so on come before a script has written anything.
 */
export function redisVerdict(error: unknown): Verdict {
  if (!(error instanceof Error) || redisAway(error)) return 'unanswered';
  if (error instanceof ReplyError) return damaged.test(error.message) ? 'rejected' : 'refused';
  // It could not even be written down: a text that is longer than a text can be.
  return error instanceof RangeError || error instanceof TypeError ? 'rejected' : 'unanswered';
}
