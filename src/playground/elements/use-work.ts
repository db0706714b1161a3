import { useState } from 'preact/hooks';

/** Work that a button begins: whether it is under way, and the error with which it failed last. */
export function useWork() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const begin = (work: () => Promise<unknown>): void => {
    setBusy(true);
    setError(undefined);
    void work()
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return { begin, busy, error };
}
