/**
 * Whether an execution, or a call within it, is open; and the AbortSignal that tells its agent when it is not. The
 * signal is made when the agent asks for it: to make one, and to abort it at the end, costs as much as a short run.
 */
export class Abort {
  readonly #report: (error: unknown) => void;
  #controller: AbortController | undefined;
  #reason: string | undefined;
  #fired = false;

  /** `report` is told what the signal's listeners throw. */
  constructor(report: (error: unknown) => void) {
    this.#report = report;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      guard(this.#controller.signal, this.#report);
      if (this.#fired) this.#controller.abort(new Error(this.#reason));
    }
    return this.#controller.signal;
  }

  /** Why nothing begins any more; undefined while it is open. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** Nothing begins any more. The first reason counts. */
  close(reason: string): void {
    this.#reason ??= reason;
  }

  /** Closes, and fires the signal. */
  abort(reason: string): void {
    this.close(reason);
    if (this.#fired) return;
    this.#fired = true;
    this.#controller?.abort(new Error(this.#reason));
  }
}

/** Node ends the process where a listener of a signal throws, or rejects; here that is reported. */
function guard(signal: AbortSignal, report: (error: unknown) => void): void {
  type Listener = EventListenerOrEventListenerObject;
  const guards = new WeakMap<Listener, EventListener>();
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  const guarded = (listener: Listener): EventListener => {
    const known = guards.get(listener);
    if (known !== undefined) return known;
    const call = (event: Event): void => {
      // Of its rejection too, which an `async` listener hides behind the type `void`.
      const heard = async (): Promise<unknown> =>
        typeof listener === 'function' ? listener.call(signal, event) : listener.handleEvent(event);
      heard().catch(report);
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
        isListener(listener) && add(type, guarded(listener), options),
    },
    removeEventListener: {
      writable: true,
      value: (type: string, listener: unknown, options?: EventListenerOptions | boolean) =>
        isListener(listener) && remove(type, guards.get(listener) ?? guarded(listener), options),
    },
  });
}
