/** A promise, and how to settle it. */
export function deferred<T = void>() {
  let resolve = (_: T | PromiseLike<T>): void => {};
  let reject = (_: unknown): void => {};
  const promise = new Promise<T>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise, resolve, reject };
}
