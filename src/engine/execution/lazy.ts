import { Observable } from 'rxjs';
import type { AgentLog, Awaitable } from '../../core/agent.ts';

/** Work that an agent asked its context for, and the agent's name. */
interface Made {
  readonly agent_name: string;
  readonly what: string;
}

/** One run remembers so many; an agent that forgets more has been told enough. */
const mostRemembered = 100;

/** What the agents of a run asked their context for, and did not subscribe to so far. Empty in a run of good agents. */
export class Unstarted {
  /** Made with the first: most agents ask for nothing. */
  #made: Set<Made> | undefined;

  add(made: Made): void {
    this.#made ??= new Set();
    if (this.#made.size < mostRemembered) this.#made.add(made);
  }

  delete(made: Made): void {
    this.#made?.delete(made);
  }

  /** The run is over: warns of all that never began. */
  report(run_id: string, log: () => AgentLog): void {
    for (const { agent_name, what } of this.#made ?? []) {
      log().warn(
        `agent ${agent_name}, run ${run_id}: ${what} was made and never began; await it, subscribe to it, or return it`,
      );
    }
    this.#made = undefined;
  }
}

/** An Observable that begins when it is subscribed to, or awaited. */
export class Lazy<T, R> extends Observable<T> implements Awaitable<T, R> {
  readonly #collect: (values: Observable<T>) => Promise<R>;
  #collected: Promise<R> | undefined;

  /** `begin` is called for each subscription, and `collect` once, for the promise. */
  constructor(begin: () => Observable<T>, collect: (values: Observable<T>) => Promise<R>) {
    super((subscriber) => begin().subscribe(subscriber));
    this.#collect = collect;
  }

  /**
   * Subscribes, once however often it is called. A promise that resolves to this calls it too: `async () => step` is the
   * last value of the step, as `await step` is.
   */
  // biome-ignore lint/suspicious/noThenProperty: `await` looks for it
  then<A = R, B = never>(
    resolved?: ((value: R) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#collected ??= this.#collect(this);
    return this.#collected.then(resolved, rejected);
  }
}
