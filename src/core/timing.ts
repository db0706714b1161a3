/** Passes on a promise's result. @throws Error where the promise is not settled within so many milliseconds */
export function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  // One promise and one timer, because every request waits here; `Promise.race` would take six promises.
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer for ${milliseconds / 1_000} s`)), milliseconds);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/** Resolves after so many milliseconds. */
export const delay = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
