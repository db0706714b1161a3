import { Observable } from 'rxjs';
import type { AgentOutput } from '../../core/agent.ts';

interface BufferedOutput {
  readonly output: AgentOutput;
  /** The number of the call that emitted it, where that is known. */
  readonly branch: number | undefined;
  /** Outputs of one burst were emitted synchronously, so their order is fixed. */
  readonly burst: number;
}

/**
 * Holds output that an agent emits too early during a replay: in the log, output of another branch comes first. Outputs
 * of one branch keep their order.
 */
export class ReorderBuffer {
  #buffered: BufferedOutput[] = [];
  #branch: number | undefined;
  #branches = 0;
  #calls = 0;
  #burst = 0;
  #bursting = false;

  /** The first buffered output. */
  get firstOutput(): AgentOutput | undefined {
    return this.#buffered[0]?.output;
  }

  get size(): number {
    return this.#buffered.length;
  }

  /** Whether calls of other agents are open. */
  get hasOpenCalls(): boolean {
    return this.#calls > 0;
  }

  /**
   * Offers an output to `accept`, which returns whether it is next in the log. Otherwise it is buffered, and offered
   * again later.
   */
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

  /** Offers the buffered outputs again. */
  retry(accept: (output: AgentOutput) => boolean): void {
    for (let accepted = true; accepted && this.#buffered.length > 0; ) {
      accepted = false;
      const waiting: BufferedOutput[] = [];
      for (const one of this.#buffered) {
        if (!waiting.some((held) => isBehind(one, held)) && accept(one.output)) accepted = true;
        else waiting.push(one);
      }
      this.#buffered = waiting;
    }
  }

  /** Marks the output of one call as a branch. */
  branch<T>(source: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      this.#branches += 1;
      this.#calls += 1;
      const branch = this.#branches;
      subscriber.add(() => {
        this.#calls -= 1;
      });
      return source.subscribe({
        next: (value) => {
          const before = this.#branch;
          this.#branch = branch;
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
