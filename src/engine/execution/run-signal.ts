import { setMaxListeners } from 'node:events';
import { type Continues, EndOfWork } from '../../core/agent.ts';
import { guarded } from '../unhandled.ts';

/** How an execution, or a call within it, closes. */
export interface Closing {
  readonly reason: string;
  /**
   * `ended`: the run or the call is over. What its agent waits for fails. `cancelled`: the same, and the agent may clean up
   * in steps. `left`: the run goes on without this execution. What its agent waits for never settles. No code of the agent is
   * called, because a clean-up would undo what the run goes on with.
   */
  readonly as: 'ended' | 'cancelled' | 'left';
  /** See `EndOfWork.continues`. Default: no. */
  readonly continues?: Continues;
}

/**
 * Whether an execution, or a call within it, is open, and the AbortSignal that fires when it closes. The signal is made when
 * the agent first reads it, because a signal takes as long as a short run.
 */
export class RunSignal {
  readonly #report: (error: unknown) => void;
  #controller: AbortController | undefined;
  #closing: Closing | undefined;
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

  /** How the execution or call has closed; undefined while it is open. */
  get closing(): Closing | undefined {
    return this.#closing;
  }

  get left(): boolean {
    return this.#closing?.as === 'left';
  }

  /** From now on no new work may begin. The first closing is kept, but for the end of a cleanup. */
  close(closing: Closing): void {
    if (this.#closing === undefined || this.#closing.as === 'cancelled') this.#closing = closing;
  }

  /** Calls back when the signal fires, before its own listeners. Returns a function that removes the listener. */
  onAbort(listener: () => void): () => void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
    return () => void this.#listeners?.delete(listener);
  }

  /** Closes, and fires the signal. */
  abort(closing: Closing): void {
    this.close(closing);
    if (this.#fired) return;
    this.#fired = true;
    for (const listener of this.#listeners ?? []) guarded(listener, this.#report);
    this.#listeners = undefined;
    this.#controller?.abort(this.#error());
  }

  #error(): EndOfWork {
    return new EndOfWork(this.#closing?.reason ?? '', this.#closing?.continues ?? false);
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
