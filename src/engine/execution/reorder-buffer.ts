import { defer, Observable } from 'rxjs';
import type { AgentOutput } from '../../core/agent.ts';
import type { ToEvents } from '../../core/to-events.ts';
import type { Event } from '../../schema/event.ts';
import type { Recorder } from './recorder.ts';

/** Does work that emits output of a call. */
export type InBranch = (work: () => void) => void;

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
  readonly #recorder: Recorder;
  readonly #toEvents: ToEvents;
  #buffered: BufferedOutput[] = [];
  #branch: number | undefined;
  #branches = 0;
  #calls = 0;
  #burst = 0;
  #bursting = false;

  constructor(recorder: Recorder, toEvents: ToEvents) {
    this.#recorder = recorder;
    this.#toEvents = toEvents;
  }

  /** The events of the first buffered output. */
  get firstEvents(): Event[] | undefined {
    const [first] = this.#buffered;
    return first && this.#eventsOf(first.output);
  }

  get size(): number {
    return this.#buffered.length;
  }

  /** Whether calls of other agents are open. */
  get hasOpenCalls(): boolean {
    return this.#calls > 0;
  }

  /** Records an output that is next in the log. Any other is buffered, and tried again later. */
  offer(output: AgentOutput): void {
    if (!this.#bursting) {
      this.#bursting = true;
      this.#burst += 1;
      queueMicrotask(() => {
        this.#bursting = false;
      });
    }
    const one: BufferedOutput = { output, branch: this.#branch, burst: this.#burst };
    const behind = this.#buffered.some((held) => isBehind(one, held));
    if (!behind && this.#tryRecord(output)) this.retry();
    else this.#buffered.push(one);
  }

  /** Records the buffered outputs that are next in the log. */
  retry(): void {
    for (let accepted = true; accepted && this.#buffered.length > 0; ) {
      accepted = false;
      const waiting: BufferedOutput[] = [];
      for (const one of this.#buffered) {
        if (!waiting.some((held) => isBehind(one, held)) && this.#tryRecord(one.output)) accepted = true;
        else waiting.push(one);
      }
      this.#buffered = waiting;
    }
  }

  /** Marks the output of one call as a branch, and what `begin` does in the function that it gets. */
  branch<T>(begin: (inBranch: InBranch) => Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      this.#branches += 1;
      this.#calls += 1;
      const branch = this.#branches;
      subscriber.add(() => {
        this.#calls -= 1;
      });
      const inBranch: InBranch = (work) => {
        const before = this.#branch;
        this.#branch = branch;
        try {
          work();
        } finally {
          this.#branch = before;
        }
      };
      return defer(() => begin(inBranch)).subscribe({
        next: (value) => inBranch(() => subscriber.next(value)),
        error: (error) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
  }

  #tryRecord(output: AgentOutput): boolean {
    const events = this.#eventsOf(output);
    if (!this.#recorder.fits(events)) return false;
    for (const event of events) this.#recorder.emit(event);
    return true;
  }

  #eventsOf(output: AgentOutput): Event[] {
    const events: Event[] = [];
    this.#toEvents(this.#recorder.run, output, (event) => void events.push(event));
    return events;
  }
}

/** A call keeps its own order. It may begin a commit later in one life than in another, so bursts are of one branch. */
const isBehind = (one: BufferedOutput, { branch, burst }: BufferedOutput): boolean =>
  branch === one.branch && (branch !== undefined || burst === one.burst);
