/** Milliseconds in which a stream has to show that it is alive after its page is back. */
export const wakeTime = 1_500;

const events = ['online', 'pageshow', 'visibilitychange'];

/**
 * Calls back when a browser is online again, or its page is shown again. Its connections may be dead without an error then:
 * the computer slept, or changed its network. Returns an unsubscribe function.
 */
export function onWake(callback: () => void): () => void {
  const onEvent = (event: Event): void => {
    // A page that is loaded is shown as well: it was not away, unlike one that the browser had kept.
    const isLoaded = 'persisted' in event && event.persisted === false;
    if (!isLoaded && globalThis.document?.visibilityState !== 'hidden') callback();
  };
  for (const event of events) globalThis.addEventListener?.(event, onEvent);
  return () => {
    for (const event of events) globalThis.removeEventListener?.(event, onEvent);
  };
}
