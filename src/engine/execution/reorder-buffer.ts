import { Observable } from 'rxjs';
import type { AgentOutput } from '../../core/agent.ts';

interface BufferedOutput {
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
export class ReorderBuffer {
  #buffered: BufferedOutput[] = [];
  #branch: number | undefined;
  #branches = 0;
  #calls = 0;
  #burst = 0;
  #bursting = false;

  /** The first output that waits. */
  get firstOutput(): AgentOutput | undefined {
    return this.#buffered[0]?.output;
  }

  get size(): number {
    return this.#buffered.length;
  }

  /** Whether agents that were called are under way. */
  get hasOpenCalls(): boolean {
    return this.#calls > 0;
  }

  /** Offers an output; `take` answers whether it is its turn. What has to wait is offered again with what follows. */
  offer(output: AgentOutput, accept: (output: AgentOutput) => boolean): void {
    if (!this.#bursting) {
      this.#bursting = true;
      this.#burst += 1;
      queueMicrotask(() => {
        this.#bursting = false;
      });
    }
    const one: BufferedOutput = { output, branch: this.#branch, burst: this.#burst };
    const behind = this.#buffered.some((held) => isBehind(one, held));
    if (!behind && accept(output)) this.retry(accept);
    else this.#buffered.push(one);
  }

  /** Offers what waits again. */
  retry(accept: (output: AgentOutput) => boolean): void {
    for (let taken = true; taken && this.#buffered.length > 0; ) {
      taken = false;
      const waiting: BufferedOutput[] = [];
      for (const one of this.#buffered) {
        if (!waiting.some((held) => isBehind(one, held)) && accept(one.output)) taken = true;
        else waiting.push(one);
      }
      this.#buffered = waiting;
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

const isBehind = (one: BufferedOutput, { branch, burst }: BufferedOutput): boolean =>
  burst === one.burst || (branch !== undefined && branch === one.branch);
