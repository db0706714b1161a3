import { append } from '../../core/collections.ts';
import { fail } from '../../core/errors.ts';
import { isFinal, isSettled } from '../../core/run-state.ts';
import type { Batch, Extras, Outcome, RunRow, Write } from '../../core/store.ts';
import type { GroupCommit, UncommittedLog } from './group-commit.ts';
import type { Readers, Source } from './source.ts';
import { Tail } from './tail.ts';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

type Lists = 'resources' | 'history' | 'journal';

/** A write that is still added to; `chars` counts its lines, and one that is `settled` ends with an answer. */
type PendingWrite = Mutable<Omit<Write, 'lines' | Lists>> & {
  lines: string[];
  chars: number;
  complete?: boolean;
} & { [List in Lists]?: NonNullable<Write[List]>[number][] };

/** What of a run's row may change without an event. */
export type RowChange = Partial<Pick<RunRow, 'status' | 'attempts'>>;

/**
 * How a log ends in this process; set once. `final`: its final event is appended. `left`: the run is handed back to the
 * store, unfinished. `moved`: another execution writes to it. `failed`: the store did not take what was appended.
 */
export type LogOutcome = 'final' | 'released' | 'fenced' | 'failed';

interface Waiter {
  resolve(): void;
  reject(error: Error): void;
}

type Callback = () => void;

const noLines: string[] = [];
/** A batch is what a reader has in its hands for as long as it does not read, so a burst is cut into several. */
const maxBatchChars = 16 * 1024;

/**
 * The log of one live run. The execution appends; readers hold cursors and are woken when more is durable.
 * Its tail has what readers that keep up have yet to read; all other readers ask the store. Only the tail and the
 * pending events cost memory. What is appended after its outcome is set is ignored.
 */
export class RunLog implements UncommittedLog, Source {
  readonly #commits: GroupCommit;
  #closeListeners: Callback[] = [];
  #statusListeners: Callback[] = [];
  /** As after everything appended; changed in place, since a copy for each token costs more than the rest of it. */
  readonly #row: Mutable<RunRow>;
  #durable: RunRow;
  #pending: PendingWrite[] = [];
  #pendingChars = 0;
  #inFlight: Write[] = [];
  /** Writes that go to the store once more, before the pending ones. */
  #toRecommit: Write[] = [];
  #flushWaiters: Waiter[] = [];
  #inFlightWaiters: Waiter[] = [];
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
    if (first.input !== undefined || first.from !== undefined) Object.assign(this.#openWrite(), first);
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
  get goesOnElsewhere(): boolean {
    return this.#outcome === 'released' || this.#outcome === 'fenced';
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
    const draft = this.#openWrite();
    const row = this.#row;
    row.last += 1;
    this.#resetAttempts();
    draft.lines = append(draft.lines, line);
    draft.chars += line.length;
    this.#pendingChars += line.length;
    if (run === undefined) return;
    this.#changed = true;
    row.snapshot = row.last;
    row.status = run.status;
    row.finished_at = run.finished_at;
    row.due = run.due;
    draft.complete = isSettled(run.status);
    if (isFinal(run.status)) this.#outcome = 'final';
    callAll(this.#statusListeners);
  }

  /**
   * Changes the row without an event. A new status raises the epoch: a process that has read the row before, this one too,
   * can change it no more.
   */
  change(row: RowChange): void {
    if (this.#outcome !== undefined) return;
    if (row.status !== undefined) this.#raiseEpoch();
    else this.#openWrite();
    this.#changed = true;
    // What is awaited no longer counts.
    Object.assign(this.#row, row, row.status !== undefined && { due: null });
    callAll(this.#statusListeners);
  }

  /** Adds to what the next commit keeps together with the events. */
  attach(extras: Extras): void {
    if (this.#outcome !== undefined) return;
    const draft = this.#openWrite();
    addExtras(draft, extras);
    if (extras.journal === undefined) return;
    this.#resetAttempts();
    for (const { length } of extras.journal) {
      draft.chars += length;
      this.#pendingChars += length;
    }
  }

  /** The run leaves this process: readers are woken, and look elsewhere once all of it is durable. */
  release(): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = 'released';
    this.#tail.wake();
  }

  /** Resolves when everything appended so far is durable; rejects `store_failed`, or `conflict` where it was refused. */
  flushed(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#pending.length + this.#inFlight.length + this.#toRecommit.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      if (this.#pending.length + this.#toRecommit.length > 0) this.#flushWaiters = append(this.#flushWaiters, waiter);
      else this.#inFlightWaiters = append(this.#inFlightWaiters, waiter);
    });
  }

  /** Calls back once: when the final event is durable, or the log has moved or failed. */
  onClosed(callback: Callback): void {
    if (this.final || this.#failure !== undefined) callback();
    else this.#closeListeners = append(this.#closeListeners, callback);
  }

  /** Calls back whenever the run's status changes, durable or not. */
  onStatusChange(callback: Callback): void {
    this.#statusListeners = append(this.#statusListeners, callback);
  }

  /** The events after an id that are in memory; undefined where the store has to be asked. */
  eventsInMemory(id: number): Batch[] | undefined {
    return this.#tail.after(id);
  }

  takePending(): Write[] {
    this.#seal();
    this.#inFlight = this.#toRecommit.length > 0 ? [...this.#toRecommit, ...this.#pending] : this.#pending;
    this.#toRecommit = [];
    this.#pending = [];
    this.#pendingChars = 0;
    this.#inFlightWaiters = this.#flushWaiters;
    this.#flushWaiters = [];
    return this.#inFlight;
  }

  /** What became of the writes in flight: those before the first that was not taken are durable. */
  onCommitted(outcomes: readonly Outcome[], at: number): void {
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
      this.#onRefused(outcomes[at + count] ?? 'fenced', writes.slice(count));
      return;
    }
    this.#inFlight = [];
    if (this.#inFlightWaiters.length > 0) for (const waiter of this.#inFlightWaiters.splice(0)) waiter.resolve();
    this.#tail.wake();
    if (this.final) this.#callCloseListeners();
  }

  /** The store did not take what was appended, within the time that it has. */
  onCommitFailed(cause: unknown): void {
    const failure = fail('store_failed');
    failure.cause = cause;
    this.#endWithFailure('failed', failure);
  }

  /** Another execution has the run now: readers look for it in the store. */
  fence(): void {
    this.#endWithFailure('fenced', fail('conflict', this.#row.run_id));
  }

  #onRefused(outcome: Outcome, [first, ...rest]: readonly Write[]): void {
    if (typeof outcome === 'object') this.onCommitFailed(outcome.rejected);
    // A reply whose key an earlier request of this run has used: the run goes on, the key stays with the earlier one.
    else if (outcome === 'key_used' && first !== undefined && first.expect > 0) this.#commitAgain(first, rest);
    else this.fence();
  }

  #commitAgain({ key: _, ...first }: Write, rest: readonly Write[]): void {
    this.#toRecommit = [first, ...rest];
    this.#inFlight = [];
    this.#flushWaiters = [...this.#inFlightWaiters.splice(0), ...this.#flushWaiters];
    if (this.#pending.length === 0) this.#commits.schedule(this);
    this.#tail.wake();
  }

  #endWithFailure(outcome: 'fenced' | 'failed', failure: Error): void {
    if (this.#failure !== undefined) return;
    this.#outcome = outcome;
    this.#failure = failure;
    this.#inFlight = [];
    this.#toRecommit = [];
    this.#pending = [];
    this.#pendingChars = 0;
    for (const waiter of [...this.#inFlightWaiters.splice(0), ...this.#flushWaiters.splice(0)]) waiter.reject(failure);
    // First: readers who are woken may look for the run at once, and must not find this log again.
    this.#callCloseListeners();
    this.#tail.wake();
  }

  #callCloseListeners(): void {
    const told = this.#closeListeners;
    this.#closeListeners = [];
    callAll(told);
  }

  // Whatever was wrong before is no longer counted.
  #resetAttempts(): void {
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
    if (current !== undefined) current.complete = true;
    const draft = this.#openWrite();
    draft.from = epoch;
    this.#row.epoch = epoch + 1;
  }

  // A write ends where a request may be answered (a final event, an await), so that no reader
  // has to look for that place inside a batch.
  #openWrite(): PendingWrite {
    const current = this.#pending.at(-1);
    if (current !== undefined && current.chars < maxBatchChars && current.complete !== true) return current;
    this.#seal();
    const draft: PendingWrite = { row: this.#row, expect: this.#row.last, lines: noLines, chars: 0 };
    this.#pending = append(this.#pending, draft);
    if (this.#pending.length === 1 && this.#toRecommit.length === 0) this.#commits.schedule(this);
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
function callAll(callbacks: readonly Callback[]): void {
  for (const callback of callbacks) callback();
}

/**
 * Adds to what a write keeps together with its events: lists grow in place, so that thousands of journal entries in
 * one turn cost linear time; of the rest, the last value counts.
 */
function addExtras(draft: PendingWrite, { resources, history, state, ended, journal, key }: Extras): void {
  // A state that another one follows in the same write is never read, and no store would remove it.
  const superseded = state === undefined ? undefined : draft.state;
  if (superseded !== undefined && draft.resources !== undefined)
    draft.resources = draft.resources.filter(({ resource_id }) => !superseded.endsWith(`/${resource_id}`));
  if (resources) draft.resources = extended(draft.resources, resources);
  if (history) draft.history = extended(draft.history, history);
  if (journal) draft.journal = extended(draft.journal, journal);
  if (state !== undefined) draft.state = state;
  if (ended) draft.ended = ended;
  if (key) draft.key = key;
}

// One by one: to spread a long list into `push` overflows the stack.
function extended<T>(list: T[] | undefined, more: readonly T[]): T[] {
  const all = list ?? [];
  for (const one of more) all.push(one);
  return all;
}
