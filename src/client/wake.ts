/** Milliseconds in which a stream has to show that it is alive after its page is back. */
export const wakeTime = 1_500;
/** Milliseconds of it that do not count: the browser passes on what had come before its page was away. */
const lateTime = 300;

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

/**
 * Calls `leave` where a stream has brought nothing in the moment after its page is back. `last` changes with each piece of
 * the stream. Returns an unsubscribe function.
 */
export function onSilentWake(last: () => unknown, leave: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const unsubscribe = onWake(() => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const before = last();
      timer = setTimeout(() => last() === before && leave(), wakeTime - lateTime);
    }, lateTime);
  });
  return () => {
    clearTimeout(timer);
    unsubscribe();
  };
}
