import { Observable } from 'rxjs';
import type { AgentOutput } from '../../core/agent.ts';

interface Held {
  readonly output: AgentOutput;
  /** The call that it came from, where that is known. */
  readonly branch: number | undefined;
  /** Outputs of one burst were emitted synchronously, so their order is the agent's. */
  readonly burst: number;
}

/**
 * Output of an agent that is led through its past, and that is not what the log has next: of two branches, the other one
 * was faster then. It waits for its turn. What one branch emits keeps its order.
 */
export class Early {
  #held: Held[] = [];
  #branch: number | undefined;
  #branches = 0;
  #calls = 0;
  #burst = 0;
  #bursting = false;

  /** The first output that waits. */
  get first(): AgentOutput | undefined {
    return this.#held[0]?.output;
  }

  get size(): number {
    return this.#held.length;
  }

  /** Whether agents that were called are under way. */
  get calls(): boolean {
    return this.#calls > 0;
  }

  /** Offers an output; `take` answers whether it is its turn. What has to wait is offered again with what follows. */
  offer(output: AgentOutput, take: (output: AgentOutput) => boolean): void {
    if (!this.#bursting) {
      this.#bursting = true;
      this.#burst += 1;
      queueMicrotask(() => {
        this.#bursting = false;
      });
    }
    const one: Held = { output, branch: this.#branch, burst: this.#burst };
    const behind = this.#held.some((held) => isBehind(one, held));
    if (!behind && take(output)) this.retry(take);
    else this.#held.push(one);
  }

  /** Offers what waits again. */
  retry(take: (output: AgentOutput) => boolean): void {
    for (let taken = true; taken && this.#held.length > 0; ) {
      taken = false;
      const waiting: Held[] = [];
      for (const one of this.#held) {
        if (!waiting.some((held) => isBehind(one, held)) && take(one.output)) taken = true;
        else waiting.push(one);
      }
      this.#held = waiting;
    }
  }

  /** Knows what comes from one call as a branch. */
  branch<T>(source: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      this.#branches += 1;
      this.#calls += 1;
      const mine = this.#branches;
      subscriber.add(() => {
        this.#calls -= 1;
      });
      return source.subscribe({
        next: (value) => {
          const before = this.#branch;
          this.#branch = mine;
          try {
            subscriber.next(value);
          } finally {
            this.#branch = before;
          }
        },
        error: (error) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
  }
}

const isBehind = (one: Held, { branch, burst }: Held): boolean =>
  burst === one.burst || (branch !== undefined && branch === one.branch);
