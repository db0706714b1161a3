import type { Write } from '../../core/store.ts';

/** What a write may carry beside events; see `Write`. Attached before the event that it belongs to. */
export type Extras = Pick<Write, 'resources' | 'history' | 'state' | 'ended' | 'journal' | 'key'>;

export type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** A write that is still added to; `chars` counts its lines, and one that is `settled` ends with an answer. */
export type Draft = Mutable<Omit<Write, 'lines'>> & { lines: string[]; chars: number; settled?: boolean };

/** Adds to what a write keeps together with its events; lists grow, and of the rest the last one counts. */
export function addTo(draft: Draft, { resources, history, state, ended, journal, key }: Extras): void {
  if (resources) draft.resources = [...(draft.resources ?? []), ...resources];
  if (history) draft.history = [...(draft.history ?? []), ...history];
  if (state !== undefined) draft.state = state;
  if (ended) draft.ended = ended;
  if (journal) draft.journal = [...(draft.journal ?? []), ...journal];
  if (key) draft.key = key;
}
