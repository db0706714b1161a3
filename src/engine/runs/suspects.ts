import type { RunRow } from '../../core/ports/run-store.ts';
import type { ActiveRuns } from './active-runs.ts';

/** A run that waits for its turn. */
interface Waiting {
  readonly run_id: string;
  readonly attempts: number;
  readonly epoch: number;
  /** Resolves when the run waits no more. */
  readonly left: Promise<void>;
  readonly leave: () => void;
}

/** The runs whose turn it was last, and their attempts before that. `since` is undefined while they are entered. */
interface Trial {
  readonly run_ids: ReadonlySet<string>;
  readonly attempts: number;
  since?: number;
}

/**
 * Checks for which the process has lived before it re-enters a suspect: 2, 4, then 8. The other runs may make progress
 * meanwhile. With more, a process that is ended often would never try a suspect.
 */
const uptimeBefore = (attempts: number): number => Math.min(2 ** attempts, 8);
/** Checks after which suspects without progress let the next ones in: 5, 30, then 60. */
const trialOf = (attempts: number): number => Math.min(5 * 6 ** (attempts - 1), 60);
/** Waiting runs that take no slot. All further ones keep theirs, so that a node takes no more of them than it has slots. */
const mostWithoutSlot = 1_000;

/**
 * Runs that may be what stops the process: they were in memory when a process died, and had made no progress since an
 * earlier re-entry. They are re-entered after all others, in batches that double with each trial that the process survives.
 * The last attempt of a run is a trial of that run alone. So only the run which stops the process uses up its attempts.
 */
export class Suspects {
  readonly #active: ActiveRuns;
  readonly #shared: boolean;
  readonly #limit: number;
  readonly #enter: (run_id: string) => Promise<void>;
  readonly #waiting = new Map<string, Waiting>();
  /** Runs that are being entered, with the epochs that they had when they began to wait. */
  readonly #entering = new Map<string, number>();
  #trial: Trial | undefined;
  #checks = 0;

  /** `shared`: other nodes may take runs. `limit` is the most attempts of a run, 0 for any number. `enter` never rejects. */
  constructor(active: ActiveRuns, shared: boolean, limit: number, enter: (run_id: string) => Promise<void>) {
    this.#active = active;
    this.#shared = shared;
    this.#limit = limit;
    this.#enter = enter;
  }

  /** Whether a run may be entered now; otherwise it waits. A run that got a reply is no suspect, and a cancel has to end. */
  admitOrQueue({ run_id, attempts, status, epoch }: RunRow): boolean {
    const waiting = this.#waiting.get(run_id);
    const isTurn = this.#trial?.run_ids.has(run_id) || this.#entering.has(run_id);
    // Another node has it: this one was stalled for longer than its lease.
    if (this.#shared && status !== 'cancelling' && epoch !== (this.#entering.get(run_id) ?? epoch)) return false;
    if (attempts === 0 || status === 'cancelling' || isTurn) {
      this.#waiting.delete(run_id);
      waiting?.leave();
      return true;
    }
    if (waiting === undefined) this.#add(run_id, attempts, epoch);
    return false;
  }

  /** How many runs wait, and take no slot. */
  get withoutSlot(): number {
    return Math.min(this.#waiting.size, mostWithoutSlot);
  }

  /** Resolves when the run does not wait for its turn. Until then it stays in this process. */
  async whenAdmitted(run_id: string): Promise<void> {
    await this.#waiting.get(run_id)?.left;
  }

  /** Another node has forwarded a reply or a cancel. A run that waits here is entered to get it. */
  admit(run_id: string): void {
    const waiting = this.#waiting.get(run_id);
    if (waiting !== undefined) void this.#enterNow(waiting);
  }

  /** Enters the next runs if their turn has come. Called periodically. */
  check(): void {
    this.#checks += 1;
    if (this.#waiting.size === 0 || !this.#isTrialOver()) return;
    const next = this.#next();
    const attempts = next[0]?.attempts ?? 0;
    if (this.#checks < uptimeBefore(attempts)) return;
    this.#takeBackLast();
    const trial: Trial = { run_ids: new Set(next.map(({ run_id }) => run_id)), attempts };
    this.#trial = trial;
    void this.#enterAll(next).then(() => {
      trial.since = this.#checks;
    });
  }

  /** The process stops: the runs that wait are left to others. */
  close(): void {
    for (const { leave } of this.#waiting.values()) leave();
    this.#waiting.clear();
  }

  #add(run_id: string, attempts: number, epoch: number): void {
    let leave = (): void => {};
    const left = new Promise<void>((resolve) => (leave = resolve));
    this.#waiting.set(run_id, { run_id, attempts, epoch, left, leave });
  }

  /** The runs with the fewest attempts: one, then twice as many as before. A run has its last attempt alone. */
  #next(): Waiting[] {
    const waiting = [...this.#waiting.values()].sort(inTurn);
    const attempts = waiting[0]?.attempts ?? 0;
    const before = this.#trial?.attempts === attempts ? this.#trial.run_ids.size : 0;
    const size = attempts + 1 === this.#limit ? 1 : Math.max(1, 2 * before);
    return waiting.slice(0, size).filter((one) => one.attempts === attempts);
  }

  /** One after the other, so that a run which stops the process at once takes no attempt of those after it. */
  async #enterAll(waiting: readonly Waiting[]): Promise<void> {
    for (const one of waiting) if (this.#waiting.get(one.run_id) === one) await this.#enterNow(one);
  }

  async #enterNow({ run_id, epoch, leave }: Waiting): Promise<void> {
    this.#waiting.delete(run_id);
    this.#entering.set(run_id, epoch);
    await this.#enter(run_id);
    this.#entering.delete(run_id);
    leave();
  }

  /** Whether each of the last ones has made progress, has left, or only awaits; or all have lived long enough. */
  #isTrialOver(): boolean {
    if (this.#trial === undefined) return true;
    const { run_ids, attempts, since } = this.#trial;
    if (since === undefined) return false;
    return this.#checks - since >= trialOf(attempts) || [...run_ids].every((run_id) => this.#isCleared(run_id));
  }

  #isCleared(run_id: string): boolean {
    const execution = this.#active.local(run_id);
    return execution === undefined || execution.log.row.attempts === 0 || execution.mayLeaveMemory();
  }

  /**
   * The run whose last attempt is over has not stopped the process. Its attempt is taken back, so that the run has one left
   * when the next suspect stops the process.
   */
  #takeBackLast(): void {
    const { run_ids = [], attempts = 0 } = this.#trial ?? {};
    if (attempts + 1 !== this.#limit) return;
    for (const run_id of run_ids) {
      const log = this.#active.local(run_id)?.log;
      if (log !== undefined && log.row.attempts > attempts) log.change({ attempts });
    }
  }
}

/** Those with fewer attempts first, then the older ones. */
const inTurn = (a: Waiting, b: Waiting): number => a.attempts - b.attempts || (a.run_id < b.run_id ? -1 : 1);
