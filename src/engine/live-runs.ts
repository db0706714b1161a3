import { EventEmitter } from 'eventemitter3';
import { fail } from '../core/errors.ts';
import type { RunRow, Store } from '../core/store.ts';
import type { Event } from '../schema/event.ts';
import type { Commits } from './commits.ts';
import type { Runs } from './cursor.ts';
import { Execution, type Services } from './execution.ts';
import type { JournalEntry } from './replay.ts';
import { RunLog } from './run-log.ts';
import type { SessionTurns } from './session-turns.ts';
import { foldRow, linesAfter } from './stored.ts';

/** A run that is about to be live again: its log, to be written to first, and how to go on then. */
export interface Revived {
  readonly log: RunLog;
  /** Waits until what was written is durable, and leads the agent through its past. */
  begin(lines?: readonly string[], journal?: readonly JournalEntry[]): Promise<Execution>;
  /** The same, but leaves the start to others. */
  wait(): Promise<Execution>;
}

/** The runs that this process has in hand. */
export class LiveRuns implements Runs {
  readonly #store: Store;
  readonly #commits: Commits;
  readonly #services: Services;
  readonly #executions = new Map<string, Execution>();
  /** Those of them that are at work: neither awaiting nor queued. */
  readonly #working = new Set<string>();
  readonly #changed = new EventEmitter<Record<string, []>>();
  readonly #turns: SessionTurns;
  #stopping = false;

  constructor(store: Store, commits: Commits, services: Services, turns: SessionTurns) {
    this.#store = store;
    this.#commits = commits;
    this.#services = services;
    this.#turns = turns;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  /** How many runs are at work. */
  get working(): number {
    return this.#working.size;
  }

  /** The run's execution; waits for one that is just leaving, so that the store has all of it. */
  async get(run_id: string): Promise<Execution | undefined> {
    const execution = this.#executions.get(run_id);
    if (execution?.log.detached !== true) return execution;
    await execution.log.flushed().catch(() => undefined); // whoever needs the store will hear of it there
    return undefined;
  }

  has(run_id: string): boolean {
    return this.#executions.has(run_id);
  }

  all(): Execution[] {
    return [...this.#executions.values()];
  }

  /** @throws RivuletError `run_unknown`, `log_removed` */
  async find(run_id: string): Promise<RunLog | RunRow> {
    return this.#executions.get(run_id)?.log ?? this.row(run_id);
  }

  /** @throws RivuletError `run_unknown`, `log_removed` */
  async row(run_id: string): Promise<RunRow> {
    const row = await this.#store.run(run_id);
    if (row !== undefined) return row;
    const { keepRuns } = this.#services.limits;
    // Ids carry the time of their making, so no list of what is gone has to be kept.
    throw keepRuns > 0 && madeAt(run_id) < Date.now() - keepRuns
      ? fail('log_removed', run_id)
      : fail('run_unknown', run_id);
  }

  /** The Run as JSON; durable. @throws RivuletError `run_unknown`, `log_removed` */
  async json(run_id: string): Promise<string> {
    const execution = await this.get(run_id);
    if (execution === undefined || execution.replaying)
      return JSON.stringify(await foldRow(this.#store, await this.row(run_id)));
    const run = JSON.stringify(execution.run);
    await execution.log.flushed();
    return run;
  }

  once(run_id: string, callback: () => void): () => void {
    this.#changed.once(run_id, callback);
    return () => this.#changed.off(run_id, callback);
  }

  /** Takes a run in hand; resolves when what it has written is durable. Rejects `store_failed`, `lost_race`. */
  async enter(execution: Execution): Promise<void> {
    const { run_id } = execution.log.row;
    this.#executions.set(run_id, execution);
    this.#count(execution);
    execution.log.whenTurned(() => this.#count(execution));
    this.#changed.emit(run_id);
    try {
      await execution.log.flushed();
    } catch (error) {
      this.#drop(execution);
      throw error;
    }
    execution.log.whenOver(() => {
      this.#drop(execution);
      if (execution.log.failure !== undefined) execution.lost(execution.log.failure);
      this.#turns.over(execution.log.row);
    });
  }

  /** Lets a durable run out of memory; whoever reads it goes on reading when it is back. */
  async leave(execution: Execution): Promise<void> {
    execution.detach();
    await execution.log.flushed().catch(() => undefined); // the log has told whoever has to know
    this.#drop(execution);
    this.#turns.left(execution.log.row);
    // What was flushed only now is news to readers who have looked already.
    this.#changed.emit(execution.log.row.run_id);
  }

  #count(execution: Execution): void {
    const { run_id, status, queued_at } = execution.log.row;
    if (this.#executions.get(run_id) !== execution) return;
    if (status === 'awaiting' || queued_at !== null) this.#working.delete(run_id);
    else this.#working.add(run_id);
  }

  #drop(execution: Execution): void {
    const { run_id } = execution.log.row;
    if (this.#executions.get(run_id) !== execution) return;
    this.#executions.delete(run_id);
    this.#working.delete(run_id);
  }

  /** Tells readers that a run which is in no process has changed. */
  touched(run_id: string): void {
    this.#changed.emit(run_id);
  }

  /**
   * Takes a durable run in hand again, under a new epoch: whoever had it before can write no more.
   * @throws RivuletError `agent_unknown`
   */
  async revive(row: RunRow, change: Partial<RunRow> = {}): Promise<Revived> {
    const agent = this.#services.registry.get(row.agent_name);
    const [first = '', ...past] = await linesAfter(this.#store, row, 0);
    const entries = (await this.#store.journal(row.run_id)).map((line): JournalEntry => JSON.parse(line));
    const input = (await this.#store.input(row.run_id)) ?? [];
    const created: Event = JSON.parse(first);
    if (!('run' in created)) throw new Error(`the log of run ${row.run_id} does not begin with its creation`);
    const log = new RunLog(this.#commits, { ...row, ...change, epoch: row.epoch + 1 }, { from: row.epoch });
    const enter = async (lines: readonly string[], journal: readonly JournalEntry[]): Promise<Execution> => {
      const whole = { lines: [...past, ...lines], journal: [...entries, ...journal] };
      const execution = new Execution(agent, created.run, input, log, this.#services, whole);
      await this.enter(execution);
      return execution;
    };
    return {
      log,
      wait: () => enter([], []),
      begin: async (lines = [], journal = []) => {
        const execution = await enter(lines, journal);
        execution.start();
        return execution;
      },
    };
  }

  /** Ends what is going on: durable runs stay for the next process, pinned ones get their time and then fail. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const waiting = this.all().filter((one) => one.run.status === 'awaiting' || one.log.row.queued_at !== null);
    for (const one of waiting)
      if (!one.durable && one.log.row.queued_at === null) one.failWith(fail('run_interrupted').toJSON());
    const leaving = (): Execution[] => this.all().filter((one) => one.durable || one.log.row.queued_at !== null);
    // Until there is none: more may come in while the store takes down that these leave.
    for (let some = leaving(); some.length > 0; some = leaving()) {
      await Promise.all(some.map((one) => this.leave(one)));
    }
    for (const run_id of this.#changed.eventNames()) this.#changed.emit(String(run_id));
    await this.#emptied(this.#services.limits.stopTime);
    for (const one of this.all()) {
      // A durable one that is here now came while the others left.
      if (one.durable) await this.leave(one);
      else one.failWith(fail('run_interrupted').toJSON());
    }
    await this.#commits.drained();
  }

  /** Resolves when no run is left, or the time is over, in milliseconds. */
  async #emptied(deadline: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, deadline);
    });
    const ended = this.all().map(({ log }) => new Promise<void>((resolve) => log.whenOver(resolve)));
    await Promise.race([Promise.all(ended), over]);
    clearTimeout(timer);
  }
}

/** Milliseconds since 1970 at which a UUID of version 7 was made; for any other, now. */
function madeAt(run_id: string): number {
  return run_id[14] === '7' ? Number.parseInt(run_id.slice(0, 8) + run_id.slice(9, 13), 16) : Date.now();
}
