import type { OnDisconnect } from '../../core/agent.ts';

interface RunReaders {
  readers: number;
  timer: NodeJS.Timeout | undefined;
}

/** Who reads a run, for runs that are cancelled when nobody does. */
export class ConnectedReaders {
  readonly #byRun = new Map<string, RunReaders>();
  readonly #cancel: (run_id: string) => void;

  constructor(cancel: (run_id: string) => void) {
    this.#cancel = cancel;
  }

  /**
   * A reader comes. Returns what to call when it goes: with true where the client was gone before the
   * answer was at its end, which is what counts.
   */
  connect(run_id: string, policy: string): (gone: boolean) => void {
    if (policy === 'continue') return () => {};
    const present = this.#byRun.get(run_id) ?? { readers: 0, timer: undefined };
    this.#byRun.set(run_id, present);
    clearTimeout(present.timer);
    present.readers += 1;
    let here = true;
    return (gone) => {
      if (!here) return;
      here = false;
      present.readers -= 1;
      if (present.readers > 0) return;
      const leave = (): void => {
        this.#byRun.delete(run_id);
        if (gone) this.#cancel(run_id);
      };
      if (gone) present.timer = setTimeout(leave, graceOf(policy));
      else leave();
    };
  }

  /** Forgets everybody: the server stops. */
  clear(): void {
    for (const { timer } of this.#byRun.values()) clearTimeout(timer);
    this.#byRun.clear();
  }
}

const graceOf = (policy: string): number => Number(/^grace=(\d+(?:\.\d+)?)$/.exec(policy)?.[1] ?? 0) * 1000;

/** Whether a text is a policy. */
export const isOnDisconnect = (text: string): text is OnDisconnect =>
  text === 'continue' || text === 'cancel' || /^grace=\d{1,6}(\.\d{1,3})?$/.test(text);
