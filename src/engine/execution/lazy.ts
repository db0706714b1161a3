import { Observable } from 'rxjs';
import type { AgentLog, Awaitable } from '../../core/agent.ts';
import { quiet } from '../unhandled.ts';

/** A question, step or call, and the agent that made it. */
interface Made {
  readonly agent_name: string;
  readonly what: string;
}

/** A run remembers this many. An agent that leaves out more is reported for these. */
const mostRemembered = 100;

/** Questions, steps and calls of a run that were made, and not subscribed to so far. */
export class Unstarted {
  /** Created with the first entry: most agents have none. */
  #made: Set<Made> | undefined;

  add(made: Made): void {
    this.#made ??= new Set();
    if (this.#made.size < mostRemembered) this.#made.add(made);
  }

  delete(made: Made): void {
    this.#made?.delete(made);
  }

  /** Called when the run is final: warns of all that never began. */
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
  readonly #collect: () => Promise<R>;
  #collected: Promise<R> | undefined;

  /** `begin` is called for each subscription, and `collect` once, for the promise. */
  constructor(begin: () => Observable<T>, collect: () => Promise<R>) {
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
    this.#collected ??= this.#collect();
    return quiet(this.#collected.then(resolved, rejected), this.#collected);
  }
}
