import { within } from '../../core/timing.ts';

/** Does the same with all parts of a store at once. Rejects with the first error, when all have answered. */
export async function each<Part, Answer>(
  parts: readonly Part[],
  ask: (part: Part) => Promise<Answer>,
): Promise<Answer[]> {
  const results = await Promise.allSettled(parts.map(ask));
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

/** Milliseconds for which the other parts are waited for when one has answered: one that hangs must not hold up all. */
const lateAfter = 1_000;

/**
 * The answers of those parts that answer soon after the first one. Rejects with an error only where none answers: what
 * waits in the others waits longer.
 */
export async function answered<Answer>(asked: readonly Promise<Answer>[]): Promise<Answer[]> {
  const found: Answer[] = [];
  const all = Promise.allSettled(asked.map(async (one) => found.push(await one)));
  await Promise.any(asked).catch(() => {});
  await within(lateAfter, all).catch(() => {});
  if (found.length === 0) await Promise.all(asked);
  return [...found];
}

/**
 * Asks one part after the other, from a part on, until there are `limit` things. Leaves out parts that do not answer.
 * Rejects only where no part has given anything, and one has failed.
 */
export async function inTurn<Part, Thing>(
  parts: readonly Part[],
  first: number,
  limit: number,
  ask: (part: Part, limit: number) => Promise<readonly Thing[]>,
): Promise<Thing[]> {
  const found: Thing[] = [];
  let failure: unknown;
  for (const part of [...parts.slice(first), ...parts.slice(0, first)]) {
    if (found.length >= limit) break;
    try {
      found.push(...(await ask(part, limit - found.length)));
    } catch (error) {
      failure = error;
    }
  }
  if (found.length === 0 && failure !== undefined) throw failure;
  return found;
}

/** The things by the number of the part that they belong to. */
export function byPart<Thing>(things: readonly Thing[], partOf: (thing: Thing) => number): [number, Thing[]][] {
  const groups = new Map<number, Thing[]>();
  for (const thing of things) {
    const part = partOf(thing);
    const group = groups.get(part);
    if (group === undefined) groups.set(part, [thing]);
    else group.push(thing);
  }
  return [...groups];
}
