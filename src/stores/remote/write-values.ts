import type { Write } from '../../core/store.ts';

/** A text as a server can keep it. With a zero or half of a surrogate pair it would refuse all of a message. */
export const storable = (text: string): string => Buffer.from(text).toString().replaceAll('\0', '\ufffd');

/**
 * What a write adds to its session; the write that makes a run makes its session, too. Clients send these URLs; each is
 * there once.
 */
export function sessionOf({ input, history, state }: Write): { history?: string[]; state?: string } {
  return {
    ...((input ?? history) !== undefined && { history: [...new Set(history?.map(storable))] }),
    ...(state !== undefined && { state: storable(state) }),
  };
}
