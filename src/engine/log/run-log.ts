import { append } from '../../core/collections.ts';
import { fail } from '../../core/errors.ts';
import { isFinal, isSettled } from '../../core/run-state.ts';
import type { Batch, Extras, Outcome, RunRow, Write } from '../../core/store.ts';
import { addTo, type Draft, type Mutable } from './draft.ts';
import type { GroupCommit, Uncommitted } from './group-commit.ts';
import type { Readers, Source } from './source.ts';
import { Tail } from './tail.ts';

/** What of a run's row may change without an event. */
export type RowChange = Partial<Pick<RunRow, 'status' | 'attempts'>>;

/**
 * How a log ends in this process; set once. `final`: its final event is appended. `left`: the run is handed back to the
 * store, unfinished. `moved`: another execution writes to it. `failed`: the store did not take what was appended.
 */
export type LogOutcome = 'final' | 'left' | 'moved' | 'failed';

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
 * Its tail has what readers that keep up have yet to read; all other readers ask the store. Only the tail and the
 * pending events cost memory. What is appended after its outcome is set is ignored.
 */
export class RunLog implements Uncommitted, Source {
  readonly #commits: GroupCommit;
  #whenClosed: Callback[] = [];
  #whenTurned: Callback[] = [];
  /** As after everything appended; changed in place, since a copy for each token costs more than the rest of it. */
  readonly #row: Mutable<RunRow>;
  #durable: RunRow;
  #pending: Draft[] = [];
  #pendingChars = 0;
  #inFlight: Write[] = [];
  /** Writes that go to the store once more, before the pending ones. */
  #again: Write[] = [];
  #waiting: Waiter[] = [];
  #waitingInFlight: Waiter[] = [];
  readonly #tail = new Tail();
  /** Whether the row differs in more than `last` from the one that was sealed before. */
  #changed = true;
  #outcome: LogOutcome | undefined;
  #failure: Error | undefined;

  /**
   * Continues the log where `row` says that it ends. With `input`, the first write makes the run;
   * with `from`, it takes the run over from that epoch.
   */
  constructor(commits: GroupCommit, row: RunRow, first: Pick<Write, 'input' | 'from' | 'when'> = {}) {
    this.#commits = commits;
    this.#row = { ...row };
    this.#durable = row;
    if (first.input !== undefined || first.from !== undefined) Object.assign(this.#draft(), first);
  }

  get run_id(): string {
    return this.#row.run_id;
  }

  /** The run's row with everything appended, durable or not. */
  get row(): RunRow {
    return this.#row;
  }

  /** Id of the last event that readers may see. */
  get durable(): number {
    return this.#durable.last;
  }

  get outcome(): LogOutcome | undefined {
    return this.#outcome;
  }

  /** Whether the final event is durable. */
  get final(): boolean {
    return isFinal(this.#durable.status);
  }

  /** Undefined where readers no longer find the run here; the store knows what became of it. */
  get readers(): Readers | undefined {
    return this.#outcome === undefined || this.#outcome === 'final' ? this.#tail : undefined;
  }

  /** Whether the run has left this process, unfinished. */
  get detached(): boolean {
    return this.#outcome === 'left' || this.#outcome === 'moved';
  }

  /** Why the store did not take what was appended; nothing follows. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Characters appended but not yet durable, journal and all: what holds a fast agent back. */
  get backlog(): number {
    return this.#pendingChars;
  }

  /** Appends the JSON of the next event. A run event brings the status and time that the row then has. */
  append(line: string, run?: Pick<RunRow, 'status' | 'finished_at' | 'due'>): void {
    if (this.#outcome !== undefined) return;
    const draft = this.#draft();
    const row = this.#row;
    row.last += 1;
    this.#gotOn();
    draft.lines = append(draft.lines, line);
    draft.chars += line.length;
    this.#pendingChars += line.length;
    if (run === undefined) return;
    this.#changed = true;
    row.snapshot = row.last;
    row.status = run.status;
    row.finished_at = run.finished_at;
    row.due = run.due;
    draft.settled = isSettled(run.status);
    if (isFinal(run.status)) this.#outcome = 'final';
    tell(this.#whenTurned);
  }

  /**
   * Changes the row without an event. A new status raises the epoch: a process that has read the row before, this one too,
   * can change it no more.
   */
  change(row: RowChange): void {
    if (this.#outcome !== undefined) return;
    if (row.status !== undefined) this.#raiseEpoch();
    else this.#draft();
    this.#changed = true;
    // What is awaited no longer counts.
    Object.assign(this.#row, row, row.status !== undefined && { due: null });
    tell(this.#whenTurned);
  }

  /** Adds to what the next commit keeps together with the events. */
  attach(extras: Extras): void {
    if (this.#outcome !== undefined) return;
    const draft = this.#draft();
    addTo(draft, extras);
    if (extras.journal === undefined) return;
    this.#gotOn();
    for (const { length } of extras.journal) {
      draft.chars += length;
      this.#pendingChars += length;
    }
  }

  /** The run leaves this process: readers are woken, and look elsewhere once all of it is durable. */
  detach(): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = 'left';
    this.#tail.wake();
  }

  /** Resolves when everything appended so far is durable; rejects `store_failed`, or `conflict` where it was refused. */
  flushed(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#pending.length + this.#inFlight.length + this.#again.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      if (this.#pending.length + this.#again.length > 0) this.#waiting = append(this.#waiting, waiter);
      else this.#waitingInFlight = append(this.#waitingInFlight, waiter);
    });
  }

  /** Calls back once: when the final event is durable, or the log has moved or failed. */
  whenClosed(callback: Callback): void {
    if (this.final || this.#failure !== undefined) callback();
    else this.#whenClosed = append(this.#whenClosed, callback);
  }

  /** Calls back whenever the run's status changes, durable or not. */
  whenTurned(callback: Callback): void {
    this.#whenTurned = append(this.#whenTurned, callback);
  }

  /** The events after an id that are in memory; undefined where the store has to be asked. */
  atHand(id: number): Batch[] | undefined {
    return this.#tail.after(id);
  }

  take(): Write[] {
    this.#seal();
    this.#inFlight = this.#again.length > 0 ? [...this.#again, ...this.#pending] : this.#pending;
    this.#again = [];
    this.#pending = [];
    this.#pendingChars = 0;
    this.#waitingInFlight = this.#waiting;
    this.#waiting = [];
    return this.#inFlight;
  }

  /** What became of the writes in flight: those before the first that was not taken are durable. */
  settle(outcomes: readonly Outcome[], at: number): void {
    const writes = this.#inFlight;
    let count = 0;
    while (count < writes.length && outcomes[at + count] === 'taken') count += 1;
    for (let index = 0; index < count; index += 1) {
      const write = writes[index];
      if (write === undefined) continue;
      this.#durable = write.row;
      if (write.lines.length > 0) this.#tail.push({ first: write.expect + 1, lines: write.lines });
    }
    if (count < writes.length) {
      this.#refused(outcomes[at + count] ?? 'fenced', writes.slice(count));
      return;
    }
    this.#inFlight = [];
    if (this.#waitingInFlight.length > 0) for (const waiter of this.#waitingInFlight.splice(0)) waiter.resolve();
    this.#tail.wake();
    if (this.final) this.#closed();
  }

  /** The store did not take what was appended, within the time that it has. */
  broke(cause: unknown): void {
    const failure = fail('store_failed');
    failure.cause = cause;
    this.#end('failed', failure);
  }

  /** Another execution has the run now: readers look for it in the store. */
  moved(): void {
    this.#end('moved', fail('conflict', this.#row.run_id));
  }

  #refused(outcome: Outcome, [first, ...rest]: readonly Write[]): void {
    if (typeof outcome === 'object') this.broke(outcome.rejected);
    // A reply whose key an earlier request of this run has used: the run goes on, the key stays with the earlier one.
    else if (outcome === 'key_used' && first !== undefined && first.expect > 0) this.#commitAgain(first, rest);
    else this.moved();
  }

  #commitAgain({ key: _, ...first }: Write, rest: readonly Write[]): void {
    this.#again = [first, ...rest];
    this.#inFlight = [];
    this.#waiting = [...this.#waitingInFlight.splice(0), ...this.#waiting];
    if (this.#pending.length === 0) this.#commits.mark(this);
    this.#tail.wake();
  }

  #end(outcome: 'moved' | 'failed', failure: Error): void {
    if (this.#failure !== undefined) return;
    this.#outcome = outcome;
    this.#failure = failure;
    this.#inFlight = [];
    this.#again = [];
    this.#pending = [];
    this.#pendingChars = 0;
    for (const waiter of [...this.#waitingInFlight.splice(0), ...this.#waiting.splice(0)]) waiter.reject(failure);
    // First: readers who are woken may look for the run at once, and must not find this log again.
    this.#closed();
    this.#tail.wake();
  }

  #closed(): void {
    const told = this.#whenClosed;
    this.#whenClosed = [];
    tell(told);
  }

  // Whatever was wrong before is no longer counted.
  #gotOn(): void {
    if (this.#row.attempts === 0) return;
    this.#row.attempts = 0;
    this.#changed = true;
  }

  // A write of its own: what was appended before belongs to the epoch before.
  #raiseEpoch(): void {
    const { epoch } = this.#row;
    const current = this.#pending.at(-1);
    // The first write, which makes the run or takes it over, is not in the store yet.
    if (current !== undefined && current.lines.length === 0 && (current.input ?? current.from) !== undefined) return;
    if (current !== undefined) current.settled = true;
    const draft = this.#draft();
    draft.from = epoch;
    this.#row.epoch = epoch + 1;
  }

  // A write ends where a request may be answered (a final event, an await), so that no reader
  // has to look for that place inside a batch.
  #draft(): Draft {
    const current = this.#pending.at(-1);
    if (current !== undefined && current.chars < batchChars && current.settled !== true) return current;
    this.#seal();
    const draft: Draft = { row: this.#row, expect: this.#row.last, lines: none, chars: 0 };
    this.#pending = append(this.#pending, draft);
    if (this.#pending.length === 1 && this.#again.length === 0) this.#commits.mark(this);
    return draft;
  }

  /** What was appended so far is a write of its own: its row is the run as of now. */
  #seal(): void {
    const draft = this.#pending.at(-1);
    if (draft === undefined || draft.row !== this.#row) return;
    draft.row = { ...this.#row };
    draft.grown = !this.#changed && draft.lines.length > 0;
    this.#changed = false;
  }
}

// Those who come meanwhile may be told too, and look in vain; who leaves makes a new list.
function tell(callbacks: readonly Callback[]): void {
  for (const callback of callbacks) callback();
}
