import { Observable } from 'rxjs';
import type { AgentOutput } from '../../core/agent.ts';
import type { ToEvents } from '../../core/to-events.ts';
import type { Event } from '../../schema/event.ts';
import type { Recorder } from './recorder.ts';

interface BufferedOutput {
  readonly output: AgentOutput;
  /** Characters of JSON. */
  readonly chars: number;
}

/**
 * What keeps its order: the output of one call, by its path as `panel/1 optimist/1`; or else the outputs of one burst, which
 * were emitted in one turn. A call may begin a commit later in one life than in another, so its bursts are not told apart.
 */
type Branch = string;

/**
 * Holds output that an agent emits too early during a replay: in the log, output of another branch comes first. Outputs
 * of one branch keep their order.
 */
export class ReorderBuffer {
  readonly #recorder: Recorder;
  readonly #toEvents: ToEvents;
  readonly #buffered = new Map<Branch, BufferedOutput[]>();
  #size = 0;
  #chars = 0;
  /** The path of the call whose output is emitted now. */
  #branch: string | undefined;
  #calls = 0;
  #burst = 0;
  #bursting = false;

  constructor(recorder: Recorder, toEvents: ToEvents) {
    this.#recorder = recorder;
    this.#toEvents = toEvents;
  }

  /** The events of the first buffered output. */
  get firstEvents(): Event[] | undefined {
    const [[first] = []] = this.#buffered.values();
    return first && this.#eventsOf(first.output);
  }

  get size(): number {
    return this.#size;
  }

  /** Characters of JSON that are buffered. */
  get chars(): number {
    return this.#chars;
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
    const branch = this.#branch ?? (`burst ${this.#burst}` as const);
    const before = this.#buffered.get(branch);
    if (before === undefined && this.#tryRecord(output)) {
      this.retry();
      return;
    }
    const chars = JSON.stringify(output)?.length ?? 0;
    if (before === undefined) this.#buffered.set(branch, [{ output, chars }]);
    else before.push({ output, chars });
    this.#size += 1;
    this.#chars += chars;
  }

  /** Records the buffered outputs that are next in the log. */
  retry(): void {
    for (let accepted = this.#size > 0; accepted; ) {
      accepted = false;
      for (const [branch, outputs] of this.#buffered) accepted = this.#retryBranch(branch, outputs) || accepted;
    }
  }

  /** Records the first ones of a branch, as far as they are next. Returns whether any is. */
  #retryBranch(branch: Branch, outputs: BufferedOutput[]): boolean {
    const other = outputs.findIndex(({ output }) => !this.#tryRecord(output));
    const recorded = outputs.splice(0, other < 0 ? outputs.length : other);
    this.#size -= recorded.length;
    for (const { chars } of recorded) this.#chars -= chars;
    if (outputs.length === 0) this.#buffered.delete(branch);
    return recorded.length > 0;
  }

  /** Marks the output of one call as a branch. */
  branch<T>(path: string, output: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      this.#calls += 1;
      subscriber.add(() => {
        this.#calls -= 1;
      });
      return output.subscribe({
        next: (value) => this.inBranch(path, () => subscriber.next(value)),
        error: (error) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
  }

  /** Does work that emits output of a call, or passes on the output of a call within that call. */
  inBranch(path: string, work: () => void): void {
    const before = this.#branch;
    // Calls within one call may be faster or slower than before as well.
    if (before?.startsWith(`${path} `) !== true) this.#branch = path;
    try {
      work();
    } finally {
      this.#branch = before;
    }
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
