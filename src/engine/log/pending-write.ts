import type { Extras, Write } from '../../core/store.ts';

export type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

type Lists = 'resources' | 'history' | 'journal';

/** A write that still grows. `chars` counts its events and journal; nothing is added once it is `complete`. */
export type PendingWrite = Mutable<Omit<Write, 'lines' | Lists>> & {
  lines: string[];
  chars: number;
  complete?: boolean;
} & { [List in Lists]?: NonNullable<Write[List]>[number][] };

/**
 * Adds the data that a write keeps beside its events. Lists grow in place, so that thousands of journal entries in
 * one turn cost linear time. Of the other fields, the last value counts.
 */
export function addExtras(draft: PendingWrite, { resources, history, state, ended, journal, key }: Extras): void {
  // A state that is replaced within the same write is never read, and no store would remove its resource.
  const superseded = state === undefined ? undefined : draft.state;
  if (superseded !== undefined && draft.resources !== undefined)
    draft.resources = draft.resources.filter(({ resource_id }) => !superseded.endsWith(`/${resource_id}`));
  if (resources) draft.resources = extended(draft.resources, resources);
  if (history) draft.history = extended(draft.history, history);
  if (journal) draft.journal = extended(draft.journal, journal);
  if (state !== undefined) draft.state = state;
  if (ended) draft.ended = ended;
  if (key) draft.key = key;
}

export const hasExtras = ({ resources, history, state, ended, journal, key }: Extras): boolean =>
  (resources ?? history ?? state ?? ended ?? journal ?? key) !== undefined;

// One by one: spreading a long list into `push` overflows the stack. A copy first: see `append`.
function extended<T>(list: T[] | undefined, more: readonly T[]): T[] {
  if (list === undefined) return [...more];
  for (const one of more) list.push(one);
  return list;
}
