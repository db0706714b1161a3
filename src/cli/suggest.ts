import type { Client } from '../client/client.ts';
import { ClientError } from '../client/client-error.ts';
import { closest } from '../core/closest.ts';
import { UsageError } from './exit-codes.ts';
import { oneLine } from './sanitize.ts';

/** ` (did you mean …?)`, or the names there are. Empty if there is nothing to suggest. */
export function suggestion(word: string, candidates: readonly string[]): string {
  const similar = closest(word, candidates);
  if (similar !== undefined) return ` Did you mean ${similar}?`;
  return candidates.length === 0 ? '' : ` There are: ${oneLine(candidates.join(', '))}.`;
}

/** Calls a server about an agent. @throws UsageError with a similar name, where there is no such agent */
export async function withAgent<T>(client: Client, agent: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ClientError) || error.status !== 404) throw error;
    const names = (await client.agents()).map(({ name }) => name);
    if (names.includes(agent)) throw error;
    throw new UsageError(`${error.message}${suggestion(agent, names)}`);
  }
}
