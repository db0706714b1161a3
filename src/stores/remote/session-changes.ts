import type { Write } from '../../core/ports/run-store.ts';

/** A text that a server accepts: a NUL character or half a surrogate pair would make it refuse the whole message. */
export const sanitizeText = (text: string): string => Buffer.from(text).toString().replaceAll('\0', '\ufffd');

/**
 * What a write changes in its session. The write that creates a run creates its session, too. The URLs come from
 * clients; each is listed once.
 */
export function sessionChanges({ input, history, state }: Write): { history?: string[]; state?: string } {
  return {
    ...((input ?? history) !== undefined && { history: [...new Set(history?.map(sanitizeText))] }),
    ...(state !== undefined && { state: sanitizeText(state) }),
  };
}
