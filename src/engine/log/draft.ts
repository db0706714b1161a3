import type { Extras, Write } from '../../core/store.ts';

export type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

type Lists = 'resources' | 'history' | 'journal';

/** A write that is still added to; `chars` counts its lines, and one that is `settled` ends with an answer. */
export type Draft = Mutable<Omit<Write, 'lines' | Lists>> & {
  lines: string[];
  chars: number;
  settled?: boolean;
} & { [List in Lists]?: NonNullable<Write[List]>[number][] };

/**
 * Adds to what a write keeps together with its events: lists grow in place, so that thousands of journal entries in
 * one turn cost linear time; of the rest, the last value counts.
 */
export function addTo(draft: Draft, { resources, history, state, ended, journal, key }: Extras): void {
  // A state that another one follows in the same write is never read, and no store would remove it.
  const superseded = state === undefined ? undefined : draft.state;
  if (superseded !== undefined && draft.resources !== undefined)
    draft.resources = draft.resources.filter(({ resource_id }) => !superseded.endsWith(`/${resource_id}`));
  if (resources) draft.resources = grown(draft.resources, resources);
  if (history) draft.history = grown(draft.history, history);
  if (journal) draft.journal = grown(draft.journal, journal);
  if (state !== undefined) draft.state = state;
  if (ended) draft.ended = ended;
  if (key) draft.key = key;
}

// One by one: to spread a long list into `push` overflows the stack.
function grown<T>(list: T[] | undefined, more: readonly T[]): T[] {
  const all = list ?? [];
  for (const one of more) all.push(one);
  return all;
}
