import type { Write } from '../../core/store.ts';

/** A text as a server can keep it. With a zero or half of a surrogate pair it would refuse all of a message. */
export const storable = (text: string): string => Buffer.from(text).toString().replaceAll('\0', '\ufffd');

/** What a write adds to its session. Clients send these URLs; each is there once. */
export function sessionOf({ history, state }: Write): { history?: string[]; state?: string } {
  return {
    ...(history !== undefined && { history: [...new Set(history.map(storable))] }),
    ...(state !== undefined && { state: storable(state) }),
  };
}
