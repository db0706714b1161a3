/**
 * Calls into code of the agent that must not keep what follows from being done, such as a teardown. RxJS throws what a
 * teardown throws out of `unsubscribe` and `error`.
 */
export function guarded(call: () => void, report: (error: unknown) => void): void {
  try {
    call();
  } catch (error) {
    report(error);
  }
}
