/** Calls the function when its result is first needed, and keeps the result. A failed call is repeated. */
export function once<T>(call: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= call().catch((error: unknown) => {
      result = undefined;
      throw error;
    });
    return result;
  };
}
