/** The first field of the form of an open question, which has the id `answer`. */
export const firstField = (): HTMLElement | null => document.querySelector('#answer :is(input, select, textarea)');

/**
 * Moves the focus to an element, unless the user is typing somewhere else or is in the inspector. It does not scroll: the
 * conversation decides what is in view.
 */
export function focusIfFree(element: HTMLElement | null): void {
  const focused = document.activeElement;
  const taken = focused?.matches('input, textarea, select, .inspector *');
  if (!taken) element?.focus({ preventScroll: true });
}
