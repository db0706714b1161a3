import type { OnDisconnect } from '../../core/agent.ts';

interface RunReaders {
  count: number;
  timer: NodeJS.Timeout | undefined;
}

/** Counts the connected readers of runs whose disconnect policy cancels them after the last reader. */
export class ConnectedReaders {
  readonly #byRun = new Map<string, RunReaders>();
  readonly #cancel: (run_id: string) => void;

  constructor(cancel: (run_id: string) => void) {
    this.#cancel = cancel;
  }

  /**
   * Adds a reader. Returns a function to call when the reader leaves: with true where the client disconnected before
   * the end of the response. Only then does the policy apply.
   */
  connect(run_id: string, policy: string): (disconnected: boolean) => void {
    if (policy === 'continue') return () => {};
    const readers = this.#byRun.get(run_id) ?? { count: 0, timer: undefined };
    this.#byRun.set(run_id, readers);
    clearTimeout(readers.timer);
    readers.count += 1;
    let connected = true;
    return (disconnected) => {
      if (!connected) return;
      connected = false;
      readers.count -= 1;
      if (readers.count > 0) return;
      const leave = (): void => {
        this.#byRun.delete(run_id);
        if (disconnected) this.#cancel(run_id);
      };
      if (disconnected) readers.timer = setTimeout(leave, graceOf(policy));
      else leave();
    };
  }

  /** Removes all readers: the server stops. */
  clear(): void {
    for (const { timer } of this.#byRun.values()) clearTimeout(timer);
    this.#byRun.clear();
  }
}

const graceOf = (policy: string): number => Number(/^grace=(\d+(?:\.\d+)?)$/.exec(policy)?.[1] ?? 0) * 1000;

/** Whether a text is a disconnect policy. */
export const isOnDisconnect = (text: string): text is OnDisconnect =>
  text === 'continue' || text === 'cancel' || /^grace=\d{1,6}(\.\d{1,3})?$/.test(text);
