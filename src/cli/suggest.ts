import type { Client } from '../client/client.ts';
import { ClientError } from '../client/client-error.ts';
import { UsageError } from './exit-codes.ts';
import { oneLine } from './sanitize.ts';

/** The candidate that a mistyped word most probably means; undefined if none is similar. */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  const typed = word.toLowerCase();
  const ranked = candidates
    .map((candidate) => ({ candidate, edits: editsBetween(typed, candidate.toLowerCase()) }))
    .filter(({ candidate, edits }) => edits <= 3 && edits < Math.max(candidate.length, typed.length) * 0.6)
    .sort((a, b) => a.edits - b.edits);
  return ranked[0]?.candidate;
}

/** The number of characters to insert, remove, replace or swap with the next one. */
function editsBetween(a: string, b: string): number {
  let [beforeLast, last]: number[][] = [[], Array.from({ length: b.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (last?.[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwap ? (beforeLast?.[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      row[j] = Math.min((last?.[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced, swapped);
    }
    [beforeLast, last] = [last, row];
  }
  return last?.[b.length] ?? 0;
}

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
