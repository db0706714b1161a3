import { isDeepStrictEqual } from 'node:util';
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
 * A part of the output that keeps its order. The output of a call is one branch, named by its path, such as
 * `panel/1 optimist/1`. Of any other output, what was emitted in one turn (a burst) is one branch.
 */
type Branch = string;

interface RecordedOutput extends BufferedOutput {
  branch: Branch;
}

/** Outputs that are remembered, to find branches that have emitted the same. */
const mostRecorded = 1_000;
/** Outputs with which two branches may begin alike. */
const mostSame = 100;

/**
 * Holds output that an agent emits too early during a replay: in the log, output of another branch comes first. Outputs
 * of one branch keep their order.
 */
export class ReorderBuffer {
  readonly #recorder: Recorder;
  readonly #toEvents: ToEvents;
  readonly #buffered = new Map<Branch, BufferedOutput[]>();
  /** The last outputs that were recorded. */
  #recorded: RecordedOutput[] = [];
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
    const branch = this.#branch ?? `burst ${this.#burst}`;
    const before = this.#buffered.get(branch);
    const buffered = { output, chars: JSON.stringify(output)?.length ?? 0 };
    if (before === undefined && this.#tryRecord(branch, buffered)) {
      this.#recordNext();
      return;
    }
    if (before === undefined) this.#buffered.set(branch, [buffered]);
    else before.push(buffered);
    this.#size += 1;
    this.#chars += buffered.chars;
  }

  /** Records the buffered outputs that are next in the log. */
  retry(): void {
    do this.#recordNext();
    while (this.#exchange());
  }

  #recordNext(): void {
    for (let accepted = this.#size > 0; accepted; ) {
      accepted = false;
      for (const [branch, outputs] of this.#buffered) accepted = this.#retryBranch(branch, outputs) || accepted;
    }
  }

  /** Records the first ones of a branch, as far as they are next. Returns whether any is. */
  #retryBranch(branch: Branch, outputs: BufferedOutput[]): boolean {
    const other = outputs.findIndex((output) => !this.#tryRecord(branch, output));
    const count = other < 0 ? outputs.length : other;
    this.#remove(branch, outputs, count);
    return count > 0;
  }

  /**
   * Corrects a wrong match. Branches may emit the same output, such as their first words, and the log does not tell which
   * branch an output came from. So an output is matched with the branch that was faster in this life. If the log goes on like a
   * slower branch, the slower branch had emitted the matched outputs: the outputs of the faster branch are buffered again.
   * Returns whether an output was recorded.
   */
  #exchange(): boolean {
    for (const [branch, outputs] of this.#buffered)
      for (const [count, next] of outputs.slice(0, mostSame + 1).entries()) {
        if (count === 0 || !this.#recorder.fits(this.#eventsOf(next.output))) continue;
        const taken = this.#recordedFor(branch, outputs.slice(0, count));
        if (taken === undefined) continue;
        this.#remove(branch, outputs, count);
        for (const one of taken.reverse()) {
          this.#buffered.set(one.branch, [one, ...(this.#buffered.get(one.branch) ?? [])]);
          this.#size += 1;
          this.#chars += one.chars;
          one.branch = branch;
        }
        return true;
      }
    return false;
  }

  /**
   * Finds the same outputs among those that were recorded for other branches. In each of these branches, they have to be the
   * last ones. They are between or after those that were recorded for this branch.
   */
  #recordedFor(branch: Branch, outputs: readonly BufferedOutput[]): RecordedOutput[] | undefined {
    const wanted = [...this.#recorded.filter((one) => one.branch === branch), ...outputs];
    const taken: RecordedOutput[] = [];
    const left = new Set<Branch>();
    for (const one of [...this.#recorded].reverse()) {
      if (taken.length === outputs.length) break;
      const isWanted = isDeepStrictEqual(one.output, wanted.at(-1)?.output);
      if (one.branch === branch && !isWanted) return undefined;
      if (!isWanted || left.has(one.branch)) {
        left.add(one.branch);
        continue;
      }
      wanted.pop();
      if (one.branch !== branch) taken.unshift(one);
    }
    return taken.length === outputs.length ? taken : undefined;
  }

  /** Removes the first ones of a branch from the buffer. */
  #remove(branch: Branch, outputs: BufferedOutput[], count: number): void {
    const removed = outputs.splice(0, count);
    this.#size -= removed.length;
    for (const { chars } of removed) this.#chars -= chars;
    if (outputs.length === 0) this.#buffered.delete(branch);
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

  #tryRecord(branch: Branch, { output, chars }: BufferedOutput): boolean {
    const events = this.#eventsOf(output);
    if (!this.#recorder.fits(events)) return false;
    for (const event of events) this.#recorder.emit(event);
    this.#recorded.push({ branch, output, chars });
    if (this.#recorded.length >= 2 * mostRecorded) this.#recorded = this.#recorded.slice(-mostRecorded);
    return true;
  }

  #eventsOf(output: AgentOutput): Event[] {
    const events: Event[] = [];
    this.#toEvents(this.#recorder.run, output, (event) => void events.push(event));
    return events;
  }
}
