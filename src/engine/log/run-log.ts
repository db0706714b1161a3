import { append } from '../../core/collections.ts';
import { fail } from '../../core/errors.ts';
import { fullChars } from '../../core/lines.ts';
import {
  type Batch,
  type Extras,
  lastAfter,
  type Outcome,
  type RunRow,
  type TargetsChanged,
  type Write,
  type WrittenRow,
} from '../../core/ports/run-store.ts';
import { isFinal, isSettled } from '../../core/run-state.ts';
import type { Run, RunStatus } from '../../schema/run.ts';
import { withTargets } from '../store/store-calls.ts';
import type { GroupCommit, UncommittedLog } from './group-commit.ts';
import type { Readers, Source } from './source.ts';
import { liveBatch, Tail } from './tail.ts';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

type Lists = 'resources' | 'history' | 'journal';

/** A write that still grows. `chars` counts its events and journal; nothing is added once it is `complete`. */
type PendingWrite = Mutable<Omit<Write, 'lines' | Lists>> & {
  lines: string[];
  chars: number;
  complete?: boolean;
} & { [List in Lists]?: NonNullable<Write[List]>[number][] };

/** The columns of a run's row that may change without an event. */
export type RowChange =
  | Pick<RunRow, 'status' | 'status_at'>
  | Partial<Pick<RunRow, 'attempts' | 'trace' | 'due' | 'rests_at' | 'parked'>>;

/**
 * How a log ends in this process; set once. `final`: its final event is appended. `released`: the run is handed back to
 * the store, unfinished. `fenced`: another execution writes to it. `failed`: the store did not commit what was
 * appended. `rejected`: the store can never take one of the writes, so another attempt would repeat it.
 */
type LogOutcome = 'final' | 'released' | 'fenced' | 'failed' | 'rejected';

/** What a run event changes in the row. */
export const changeOf = (
  { status, finished_at, await_request }: Run,
  now: string,
): Pick<RunRow, 'status' | 'status_at' | 'finished_at' | 'due'> => ({
  status,
  status_at: finished_at ?? now,
  finished_at: finished_at ?? null,
  due: await_request?.expires_at ?? null,
});

interface Waiter {
  resolve(): void;
  reject(error: Error): void;
}

type Callback = () => void;

/** Characters of one write that a model does not emit within the interval of commits. Such a write does not wait for it. */
const burst = 4 * 1024;

/** Stands for any empty list: `append` replaces it. */
const none: never[] = [];

const ignoreStatus = (): void => {};

/**
 * The log of one live run. The execution appends events; readers hold cursors and are woken when more is durable.
 * Readers that keep up read from the tail, all others from the store. Only the tail and the pending events cost memory.
 * Events that are appended after the outcome is set are ignored.
 */
export class RunLog implements UncommittedLog, Source {
  readonly #commits: GroupCommit;
  #closeListeners: Callback[] = none;
  #onStatus: (before: RunStatus) => void = ignoreStatus;
  /** The row after everything appended. Changed in place, because a copy for each token would be slow. */
  readonly #row: Mutable<RunRow>;
  /** The row of the last sealed write. */
  #written: WrittenRow;
  #durable: number;
  #final: boolean;
  #pending: PendingWrite[] = none;
  #pendingChars = 0;
  #inFlight: PendingWrite[] = none;
  #flushWaiters: Waiter[] = none;
  #inFlightWaiters: Waiter[] = none;
  readonly #tail = new Tail();
  /** Whether more than `last` has changed in the row since the last sealed write. */
  #changed = true;
  #outcome: LogOutcome | undefined;
  #failure: Error | undefined;

  /**
   * Continues the log after `row.last`. With `input`, the first write creates the run;
   * with `from`, it takes the run over from that epoch.
   */
  constructor(commits: GroupCommit, row: RunRow, first: Pick<Write, 'input' | 'from' | 'when'> = {}) {
    this.#commits = commits;
    this.#row = { ...row };
    this.#written = row;
    this.#durable = row.last;
    this.#final = isFinal(row.status);
    if (first.input === undefined && first.from === undefined) return;
    Object.assign(this.#openWrite(), first);
    this.#commits.hurry();
  }

  get run_id(): string {
    return this.#row.run_id;
  }

  get on_disconnect(): string {
    return this.#row.on_disconnect;
  }

  /** The run's row with everything appended, durable or not. */
  get row(): RunRow {
    return this.#row;
  }

  /** Id of the last event that readers may see. */
  get durable(): number {
    return this.#durable;
  }

  get snapshot(): number {
    return this.#row.snapshot;
  }

  get outcome(): LogOutcome | undefined {
    return this.#outcome;
  }

  /** Whether the final event is durable. */
  get final(): boolean {
    return this.#final;
  }

  /** Whether the store has all of it, and that the run was handed back. */
  get isReleased(): boolean {
    return this.#outcome === 'released' && this.#inFlight.length + this.#pending.length === 0;
  }

  /** Whether the run is as this log has it. Otherwise the run goes on elsewhere, or only the store has it. */
  get serves(): boolean {
    return this.#outcome === undefined || this.#outcome === 'final';
  }

  get readers(): Readers | undefined {
    return this.serves ? this.#tail : undefined;
  }

  /** The error of a log that is `fenced`, `failed` or `rejected`. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Characters of events and journal that are appended and not yet in flight: the measure for backpressure. */
  get backlog(): number {
    return this.#pendingChars;
  }

  /** Commits what is pending at the end of this turn, instead of with the next tokens. */
  hurry(): void {
    this.#commits.hurry();
  }

  /**
   * Appends the JSON of the next event. `run` has what a run event changes in the row. The caller of an event that is no part
   * of a message also calls `hurry`.
   */
  append(line: string, run?: ReturnType<typeof changeOf>): void {
    if (this.#outcome !== undefined) return;
    const draft = this.#openWrite(line.length);
    const row = this.#row;
    row.last += 1;
    this.#resetAttempts();
    draft.lines = append(draft.lines, line);
    draft.chars += line.length;
    this.#pendingChars += line.length;
    if (draft.chars > burst) this.#commits.hurry();
    if (run === undefined) return;
    const before = row.status;
    this.#commits.hurry();
    this.#changed = true;
    row.snapshot = row.last;
    row.status = run.status;
    row.status_at = run.status_at;
    row.finished_at = run.finished_at;
    row.due = run.due;
    draft.complete = isSettled(run.status);
    if (isFinal(run.status)) this.#outcome = 'final';
    this.#onStatus(before);
  }

  /**
   * Changes the row without an event. A new status raises the epoch, so that any process that has read the row before
   * is fenced. So does parking: readers of changes compare epochs.
   */
  change(row: RowChange): void {
    if (this.#outcome !== undefined) return;
    const isStatus = 'status' in row;
    const before = this.#row.status;
    if (isStatus || 'parked' in row) this.#raiseEpoch();
    else this.#openWrite();
    this.#changed = true;
    this.#commits.hurry();
    // A run that is no longer awaiting has no due time.
    Object.assign(this.#row, row, isStatus && { due: null });
    this.#onStatus(before);
  }

  /**
   * Takes the run once more for its node, whose lease has ended. The write is refused where another node has taken the run
   * over, and fences a node that is about to do so.
   */
  takeAgain(node: string | undefined): void {
    if (this.#outcome !== undefined) return;
    this.#raiseEpoch();
    this.attach(node === undefined ? {} : { node });
    this.#changed = true;
  }

  /** Adds data that is committed together with the next events. */
  attach(extras: Extras): void {
    if (this.#outcome !== undefined) return;
    const draft = this.#openWrite();
    addExtras(draft, extras);
    if (extras.node !== undefined) this.#changed = true;
    // A state counts until the commit, also where a later state of the same write replaces it.
    if (extras.resources !== undefined) for (const { body } of extras.resources) this.#pendingChars += body.length;
    if (extras.journal === undefined) {
      this.#commits.hurry();
      return;
    }
    this.#resetAttempts();
    for (const { length } of extras.journal) {
      draft.chars += length;
      this.#pendingChars += length;
    }
  }

  /** Hands the run back to the store. Readers are woken, and read from the store once everything is durable. */
  release(): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = 'released';
    this.#tail.wake();
  }

  /**
   * Resolves when everything appended so far is durable. Rejects `store_failed`, or `conflict` when the log is fenced.
   */
  flushed(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#pending.length + this.#inFlight.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      if (this.#pending.length === 0) {
        this.#inFlightWaiters = append(this.#inFlightWaiters, waiter);
      } else {
        this.#flushWaiters = append(this.#flushWaiters, waiter);
        this.#commits.hurry();
      }
    });
  }

  /** Calls back once: when the final event is durable, or the log is fenced or failed. */
  onClosed(callback: Callback): void {
    if (this.#final || this.#failure !== undefined) callback();
    else this.#closeListeners = append(this.#closeListeners, callback);
  }

  /** Sets what is called whenever the row has changed, before the change is durable, with the status before. */
  onStatusChange(callback: (before: RunStatus) => void): void {
    this.#onStatus = callback;
  }

  batchInMemory(id: number): Batch | undefined {
    return this.#tail.after(id);
  }

  takePending(): Write[] {
    this.#seal();
    this.#inFlight = this.#pending;
    this.#pending = none;
    this.#pendingChars = 0;
    this.#inFlightWaiters = this.#flushWaiters;
    this.#flushWaiters = none;
    return this.#inFlight;
  }

  /** Writes before the first one that was not taken are durable. */
  onCommitted(outcomes: readonly Outcome[], at: number): void {
    const writes = this.#inFlight;
    let count = 0;
    while (count < writes.length && outcomes[at + count] === 'taken') count += 1;
    for (let index = 0; index < count; index += 1) {
      const write = writes[index];
      if (write === undefined) continue;
      this.#durable = lastAfter(write);
      if (write.grown !== true) this.#final = isFinal(write.row.status);
      if (write.lines.length > 0) this.#tail.push(liveBatch(write.expect + 1, write.lines));
    }
    if (count < writes.length) {
      this.#onRefused(outcomes[at + count] ?? 'fenced', writes.slice(count));
      return;
    }
    this.#inFlight = none;
    if (this.#inFlightWaiters.length > 0) for (const waiter of this.#inFlightWaiters.splice(0)) waiter.resolve();
    this.#tail.wake();
    if (this.#final) this.#callCloseListeners();
  }

  /** Ends the log: the store did not commit its writes within `storeTimeout`, or never can. */
  onCommitFailed(cause: unknown, outcome: 'failed' | 'rejected' = 'failed'): void {
    this.#endWithFailure(outcome, Object.assign(fail('store_failed'), { cause }));
  }

  /** Ends the log: another execution has the run now. Readers look for it in the store. */
  fence(failure = fail('conflict', this.#row.run_id)): void {
    this.#endWithFailure('fenced', failure);
  }

  #onRefused(outcome: Outcome, refused: readonly PendingWrite[]): void {
    const [first, ...rest] = refused;
    if (typeof outcome === 'object' && 'rejected' in outcome) this.onCommitFailed(outcome.rejected, 'rejected');
    else if (typeof outcome === 'object') this.#retarget(outcome, refused);
    // An earlier request of this run has used the reply's key and keeps it. The run goes on.
    else if (outcome === 'key_used' && first !== undefined && first.expect > 0) {
      const { key: _, ...keyless } = first;
      this.#commitAgain([keyless, ...rest]);
    } else if (outcome === 'key_used') this.fence(fail('key_in_use'));
    else this.fence();
  }

  #retarget(changed: TargetsChanged, refused: readonly PendingWrite[]): void {
    this.#row.targets = changed.targets;
    this.#changed = true;
    this.#commitAgain(refused.map((write) => withTargets(write, changed)));
  }

  /** The writes come before the pending ones, and as they are: nothing is added to them. */
  #commitAgain(writes: PendingWrite[]): void {
    if (this.#pending.length === 0) this.#commits.schedule(this);
    this.#pending = [...writes.map((write) => ({ ...write, complete: true })), ...this.#pending];
    this.#inFlight = none;
    this.#flushWaiters = [...this.#inFlightWaiters.splice(0), ...this.#flushWaiters];
    this.#commits.hurry();
    this.#tail.wake();
  }

  #endWithFailure(outcome: 'fenced' | 'failed' | 'rejected', failure: Error): void {
    if (this.#failure !== undefined) return;
    this.#outcome = outcome;
    this.#failure = failure;
    this.#inFlight = none;
    this.#pending = none;
    this.#pendingChars = 0;
    for (const waiter of [...this.#inFlightWaiters.splice(0), ...this.#flushWaiters.splice(0)]) waiter.reject(failure);
    // Before readers are woken: they look for the run at once, and must not find this log again.
    this.#callCloseListeners();
    this.#tail.wake();
  }

  #callCloseListeners(): void {
    const listeners = this.#closeListeners;
    this.#closeListeners = none;
    for (const listener of listeners) listener();
  }

  // The run makes progress: recovery attempts count from zero.
  #resetAttempts(): void {
    if (this.#row.attempts === 0) return;
    this.#row.attempts = 0;
    this.#changed = true;
  }

  // Starts a new write: events that were appended before belong to the epoch before.
  #raiseEpoch(): void {
    const { epoch } = this.#row;
    const current = this.#pending.at(-1);
    // The first write, which creates the run or takes it over, is not in the store yet.
    const isFirst = current?.lines.length === 0 && (current.input ?? current.from) !== undefined;
    if (isFirst && current.complete !== true) return;
    if (current !== undefined) current.complete = true;
    const draft = this.#openWrite();
    draft.from = epoch;
    this.#row.epoch = epoch + 1;
  }

  // A write ends with the event that settles the run, so that no reader has to search a batch for it. A long event, of
  // `chars`, begins another write, so that a reader of the events before it does not load it. Data that is attached stays in
  // one write with the next event, however long that event is.
  #openWrite(chars = 0): PendingWrite {
    const current = this.#pending.at(-1);
    if (current !== undefined && current.complete !== true && current.chars < fullChars) {
      const isApart = chars >= fullChars && current.lines.length > 0 && !hasExtras(current);
      if (!isApart) return current;
    }
    this.#seal();
    const draft: PendingWrite = { row: this.#row, expect: this.#row.last, lines: none, grown: false, chars: 0 };
    this.#pending = append(this.#pending, draft);
    if (this.#pending.length === 1) this.#commits.schedule(this);
    return draft;
  }

  /** Gives the last pending write its row: the run's row as of now. */
  #seal(): void {
    const draft = this.#pending.at(-1);
    if (draft === undefined || draft.row !== this.#row) return;
    if (this.#changed) this.#written = { ...this.#row };
    draft.row = this.#written;
    draft.grown = !this.#changed && draft.lines.length > 0;
    this.#changed = false;
  }
}

/**
 * Adds the data that a write keeps beside its events. Lists grow in place: one turn may add thousands of journal entries. Of
 * the other fields, the last value counts.
 */
function addExtras(draft: PendingWrite, { resources, history, state, ended, journal, key, node }: Extras): void {
  // A state that is replaced within the same write is never read, and no store would remove its resource.
  const superseded = state === undefined ? undefined : draft.state;
  if (superseded !== undefined && draft.resources !== undefined)
    draft.resources = draft.resources.filter(({ resource_id }) => !superseded.endsWith(`/${resource_id}`));
  if (resources) draft.resources = extended(draft.resources, resources);
  if (history) draft.history = extended(draft.history, history);
  if (journal) draft.journal = extended(draft.journal, journal);
  if (state !== undefined) draft.state = state;
  if (ended) draft.ended = ended;
  if (key) draft.key = key;
  if (node !== undefined) draft.node = node;
}

const hasExtras = ({ resources, history, state, ended, journal, key, node }: Extras): boolean =>
  node !== undefined || (resources ?? history ?? state ?? ended ?? journal ?? key) !== undefined;

// One by one: spreading a long list into `push` overflows the stack. A copy first: see `append`.
function extended<T>(list: T[] | undefined, more: readonly T[]): T[] {
  if (list === undefined) return [...more];
  for (const one of more) list.push(one);
  return list;
}
