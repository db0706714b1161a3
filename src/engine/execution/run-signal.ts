import { setMaxListeners } from 'node:events';
import { type Continues, EndOfWork } from '../../core/agent.ts';
import { guarded } from './guarded.ts';

/**
 * Whether an execution, or a call within it, is open, and the AbortSignal that fires when it ends. The signal is made
 * when the agent first reads it: making one, and aborting it at the end, costs as much as a short run.
 */
export class RunSignal {
  readonly #report: (error: unknown) => void;
  #controller: AbortController | undefined;
  #reason: string | undefined;
  #continues: Continues = false;
  #fired = false;
  /** Created with the first entry. */
  #listeners: Set<() => void> | undefined;

  /** `report` receives what the signal's listeners throw. */
  constructor(report: (error: unknown) => void) {
    this.#report = report;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      // Each request that an agent has under way adds one. Node 20 would warn of the eleventh.
      setMaxListeners(0, this.#controller.signal);
      guardListeners(this.#controller.signal, this.#report);
      if (this.#fired) this.#controller.abort(this.#error());
    }
    return this.#controller.signal;
  }

  /** Why the execution or call ended; undefined while it is open. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** Whether the run goes on in another process, or later in this one. */
  get continues(): Continues {
    return this.#continues;
  }

  /** From now on no new work may begin. The first reason is kept. */
  close(reason: string, continues: Continues = false): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#continues = continues;
  }

  /** Calls back when the signal fires, and makes no signal for that. Returns a function that removes the listener. */
  onAbort(listener: () => void): () => void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
    return () => void this.#listeners?.delete(listener);
  }

  /** Closes, and fires the signal. */
  abort(reason: string, continues: Continues = false): void {
    this.close(reason, continues);
    if (this.#fired) return;
    this.#fired = true;
    for (const listener of this.#listeners ?? []) guarded(listener, this.#report);
    this.#listeners = undefined;
    this.#controller?.abort(this.#error());
  }

  #error(): EndOfWork {
    return new EndOfWork(this.#reason ?? '', this.#continues);
  }
}

/** Reports what a listener of the signal throws or rejects with; Node would end the process. */
function guardListeners(signal: AbortSignal, report: (error: unknown) => void): void {
  type Listener = EventListenerOrEventListenerObject;
  const guards = new WeakMap<Listener, EventListener>();
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  const guardOf = (listener: Listener): EventListener => {
    const known = guards.get(listener);
    if (known !== undefined) return known;
    const call = (event: Event): void => {
      // `async`, so that the rejection of an `async` listener is caught as well.
      const called = async (): Promise<unknown> =>
        typeof listener === 'function' ? listener.call(signal, event) : listener.handleEvent(event);
      called().catch(report);
    };
    guards.set(listener, call);
    return call;
  };
  const isListener = (listener: unknown): listener is Listener =>
    typeof listener === 'function' || (typeof listener === 'object' && listener !== null);
  Object.defineProperties(signal, {
    addEventListener: {
      writable: true,
      value: (type: string, listener: unknown, options?: AddEventListenerOptions | boolean) =>
        isListener(listener) && add(type, guardOf(listener), options),
    },
    removeEventListener: {
      writable: true,
      value: (type: string, listener: unknown, options?: EventListenerOptions | boolean) =>
        isListener(listener) && remove(type, guards.get(listener) ?? guardOf(listener), options),
    },
  });
}
