import { append } from '../../core/append.ts';
import { fail } from '../../core/errors.ts';
import { isFinal, isSettled } from '../../core/status.ts';
import type { RunRow, Write } from '../../core/store.ts';
import { addTo, type Draft, type Extras, type Mutable } from './draft.ts';
import type { Commits, Uncommitted } from './group-commit.ts';
import { Tail } from './tail.ts';

/** What of a run's row may change without an event. */
export type RowChange = Partial<Pick<RunRow, 'status' | 'attempts'>>;

interface Waiter {
  resolve(): void;
  reject(error: Error): void;
}

type Callback = () => void;

const none: string[] = [];
/** A batch is what a reader has in its hands for as long as it does not read, so a burst is cut into several. */
const batchChars = 16 * 1024;

/**
 * The log of one live run. The execution appends; readers hold cursors and are woken when more is durable.
 * Its tail has what readers who keep up have yet to read; everybody else asks the store. Only the tail and the
 * pending events cost memory.
 */
export class RunLog implements Uncommitted {
  readonly #commits: Commits;
  /** Who is told what. */
  #whenOver: Callback[] = [];
  #whenTurned: Callback[] = [];
  /** As after everything appended; changed in place, since a copy for each token costs more than the rest of it. */
  readonly #row: Mutable<RunRow>;
  #durable: RunRow;
  #pending: Draft[] = [];
  #pendingChars = 0;
  #inFlight: Write[] = [];
  #waiting: Waiter[] = [];
  #waitingInFlight: Waiter[] = [];
  readonly tail = new Tail();
  /** Whether the row differs in more than `last` from the one that was sealed before. */
  #changed = true;
  #failure: Error | undefined;
  #detached = false;

  /**
   * Continues the log where `row` says that it ends. With `input`, the first write makes the run;
   * with `from`, it takes the run over from that epoch.
   */
  constructor(commits: Commits, row: RunRow, first: Pick<Write, 'input' | 'from' | 'when'> = {}) {
    this.#commits = commits;
    this.#row = { ...row };
    this.#durable = row;
    if (first.input !== undefined || first.from !== undefined) Object.assign(this.#draft(), first);
  }

  /** The run's row with everything appended, durable or not. */
  get row(): RunRow {
    return this.#row;
  }

  /** Id of the last event that readers may see. */
  get durable(): number {
    return this.#durable.last;
  }

  /** Whether the run is over and all of it is durable. */
  get ended(): boolean {
    return isFinal(this.#durable.status);
  }

  /** Whether the run has left this process, unfinished; readers look for it in the store. */
  get detached(): boolean {
    return this.#detached;
  }

  /** Set when the store did not take what was appended; nothing follows. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Characters appended but not yet durable: what holds a fast agent back. */
  get backlog(): number {
    return this.#pendingChars;
  }

  /** Appends the JSON of the next event. A run event brings the status and time that the row then has. */
  append(line: string, run?: Pick<RunRow, 'status' | 'finished_at' | 'due'>): void {
    if (this.#failure !== undefined) return;
    const draft = this.#draft();
    const row = this.#row;
    row.last += 1;
    // It got on, so whatever was wrong before is no longer counted.
    if (row.attempts > 0) this.change({ attempts: 0 });
    if (run !== undefined) {
      this.#changed = true;
      row.snapshot = row.last;
      row.status = run.status;
      row.finished_at = run.finished_at;
      row.due = run.due;
      draft.settled = isSettled(run.status);
    }
    draft.lines = append(draft.lines, line);
    draft.chars += line.length;
    this.#pendingChars += line.length;
    if (run !== undefined) tell(this.#whenTurned);
  }

  /** Changes the row without an event. */
  change(row: RowChange): void {
    if (this.#failure !== undefined) return;
    this.#draft();
    this.#changed = true;
    Object.assign(this.#row, row);
    tell(this.#whenTurned);
  }

  /** Adds to what the next commit keeps together with the events. */
  attach(extras: Extras): void {
    if (this.#failure !== undefined) return;
    addTo(this.#draft(), extras);
  }

  /** The run leaves this process: readers are woken, and look elsewhere once all of it is durable. */
  detach(): void {
    this.#detached = true;
    this.tail.wake();
  }

  /** Resolves when everything appended so far is durable; rejects `store_failed`. */
  flushed(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#pending.length === 0 && this.#inFlight.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      if (this.#pending.length > 0) this.#waiting = append(this.#waiting, waiter);
      else this.#waitingInFlight = append(this.#waitingInFlight, waiter);
    });
  }

  /** Calls back once, when the run is over and durable, or the store has failed it. */
  whenOver(callback: Callback): void {
    if (this.ended || this.#failure !== undefined) callback();
    else this.#whenOver = append(this.#whenOver, callback);
  }

  /** Calls back whenever the run's status changes, durable or not. */
  whenTurned(callback: Callback): void {
    this.#whenTurned = append(this.#whenTurned, callback);
  }

  take(): Write[] {
    this.#seal();
    this.#inFlight = this.#pending;
    this.#pending = [];
    this.#pendingChars = 0;
    this.#waitingInFlight = this.#waiting;
    this.#waiting = [];
    return this.#inFlight;
  }

  committed(): void {
    for (const write of this.#inFlight) {
      this.#durable = write.row;
      if (write.lines.length > 0) this.tail.push({ first: write.expect + 1, lines: write.lines });
    }
    this.#inFlight = [];
    if (this.#waitingInFlight.length > 0) for (const waiter of this.#waitingInFlight.splice(0)) waiter.resolve();
    this.tail.wake();
    if (this.ended) this.#over();
  }

  broke(cause: unknown): void {
    const failure = fail('store_failed');
    failure.cause = cause;
    this.#fail(failure);
  }

  /** Another process has the run now: readers look for it in the store. */
  refused(): void {
    this.#detached = true;
    this.#fail(fail('lost_race', this.#row.run_id));
  }

  #fail(failure: Error): void {
    this.#failure = failure;
    this.#inFlight = [];
    this.#pending = [];
    for (const waiter of [...this.#waitingInFlight.splice(0), ...this.#waiting.splice(0)]) waiter.reject(failure);
    // First: readers who are woken may look for the run at once, and must not find this log again.
    this.#over();
    this.tail.wake();
  }

  #over(): void {
    const told = this.#whenOver;
    this.#whenOver = [];
    tell(told);
  }

  // A write ends where a request may be answered (a final event, an await), so that no reader
  // has to look for that place inside a batch.
  #draft(): Draft {
    const current = this.#pending.at(-1);
    if (current !== undefined && current.chars < batchChars && current.settled !== true) return current;
    this.#seal();
    const draft: Draft = { row: this.#row, expect: this.#row.last, lines: none, chars: 0 };
    this.#pending = append(this.#pending, draft);
    if (this.#pending.length === 1) this.#commits.mark(this);
    return draft;
  }

  /** What was appended so far is a write of its own: its row is the run as of now. */
  #seal(): void {
    const draft = this.#pending.at(-1);
    if (draft === undefined) return;
    draft.row = { ...this.#row };
    draft.grown = !this.#changed && draft.lines.length > 0;
    this.#changed = false;
  }
}

// Those who come meanwhile may be told too, and look in vain; who leaves makes a new list.
function tell(callbacks: readonly Callback[]): void {
  for (const callback of callbacks) callback();
}
