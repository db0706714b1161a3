/** What a promise answers. @throws Error where it does not in so many milliseconds; it is then left alone */
export function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  // One promise and one timer: every request waits like this, and a race of two promises takes six.
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
