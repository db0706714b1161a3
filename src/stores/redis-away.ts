import { ReplyError } from 'ioredis';
import { networkFailed } from './outage.ts';

/** What the client rejects with where a connection was lost, or there is none. */
const names = new Set(['MaxRetriesPerRequestError', 'AbortError', 'ParserError']);
const messages = /^(Connection is closed|Stream isn't writeable|Socket timeout)/;

// Before Redis 7, an error inside a script comes in the words of the script.
const refused = /(?:^|: -)(?:LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/;

/** Whether an error means that Redis cannot be asked at present, and nothing about what it was asked for. */
export function redisAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof ReplyError) return refused.test(error.message);
  return names.has(error.name) || messages.test(error.message) || networkFailed(error);
}
