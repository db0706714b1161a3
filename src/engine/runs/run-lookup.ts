import { EventEmitter } from 'eventemitter3';
import { fail, type RivuletError } from '../../core/errors.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import { madeAt } from '../ids.ts';
import { Cursor, type CursorOptions } from '../log/cursor.ts';
import { PageCache } from '../log/page-cache.ts';
import { type RunFinder, type Source, storedSource } from '../log/source.ts';
import { foldStored, parkedOf } from '../log/stored-run.ts';
import type { Followed } from '../store/followed.ts';
import type { RunTest } from '../store/visible-runs.ts';
import type { ActiveRuns } from './active-runs.ts';

export interface RunLookupOptions {
  /** Milliseconds that a final run is kept; zero for ever. */
  readonly runTtl: number;
  /** What this node follows, to hear of other nodes' writes. */
  readonly followed: Followed;
}

/** Finds any run for its readers: in this process where it is executed here, and in the store otherwise. */
export class RunLookup implements RunFinder {
  readonly #store: Store;
  readonly #active: ActiveRuns;
  readonly #options: RunLookupOptions;
  readonly #pages: PageCache;
  readonly #changes = new EventEmitter<Record<string, []>>();
  #listenerCount = 0;

  constructor(store: Store, active: ActiveRuns, options: RunLookupOptions) {
    this.#store = store;
    this.#active = active;
    this.#options = options;
    this.#pages = new PageCache(store);
    active.events.on('changed', (run_id) => this.#notify(run_id));
    active.events.on('stopping', () => this.notifyAll());
  }

  get stopping(): boolean {
    return this.#active.stopping;
  }

  /**
   * A cursor on the log of any run, live or stored; the caller closes it.
   * @throws RivuletError `run_unknown`, `log_removed`, `cursor_invalid`, `store_unavailable`
   */
  async openCursor(run_id: string, options: CursorOptions): Promise<Cursor> {
    return this.cursor(await this.find(run_id, options.seen ?? options.after), options);
  }

  /** @throws RivuletError `cursor_invalid` */
  cursor(source: Source, options: CursorOptions): Cursor {
    return new Cursor(this.#pages, this, source, options);
  }

  /** @throws RivuletError `run_unknown`, `log_removed`, `store_unavailable` */
  async find(run_id: string, seen = 0): Promise<Source> {
    const log = this.#active.local(run_id)?.log;
    if (log?.serves && seen <= log.durable) return log;
    const execution = await this.#active.get(run_id);
    if (execution !== undefined) {
      // A reader with more events has read them on another node: this execution may be fenced without knowing it yet.
      const isHere = seen <= execution.log.durable || (await this.#active.whenDurable(execution));
      if (isHere && execution.log.serves) return execution.log;
    }
    return storedSource(await this.row(run_id));
  }

  /** @throws RivuletError `run_unknown`, `log_removed`, `store_unavailable` */
  async row(run_id: string): Promise<RunRow> {
    const row = await this.#store.run(run_id);
    if (row !== undefined) return row;
    throw this.#missing(run_id);
  }

  /**
   * Resolves to the name of a run's agent, where the run is allowed. Any other run is read from the store, and is unknown to the
   * caller. An answer without that read would come sooner, and so tell that the run exists.
   * @throws as `row`
   */
  async check(run_id: string, isAllowed: RunTest): Promise<string> {
    const local = this.#active.local(run_id)?.log.row;
    if (local !== undefined && isAllowed(local)) return local.agent_name;
    const row = await this.#store.run(run_id);
    if (row === undefined || !isAllowed(row)) throw this.#missing(run_id);
    return row.agent_name;
  }

  #missing(run_id: string): RivuletError {
    const { runTtl } = this.#options;
    // Ids carry their creation time, so that no list of removed runs has to be kept.
    return runTtl > 0 && madeAt(run_id) < Date.now() - runTtl
      ? fail('log_removed', run_id)
      : fail('run_unknown', run_id);
  }

  /**
   * The Run as JSON; everything in it is durable.
   * @throws RivuletError `run_unknown`, `log_removed`, `store_unavailable`
   */
  async json(run_id: string): Promise<string> {
    const execution = await this.#active.get(run_id);
    if (execution !== undefined && !execution.replaying) {
      const run = JSON.stringify(execution.run);
      if (await this.#active.whenDurable(execution)) return run;
    }
    const row = await this.row(run_id);
    return JSON.stringify({ ...(await foldStored(this.#store, row)), ...parkedOf(row) });
  }

  /** The Run as JSON, as of the event with which it began to await. @throws as `json` */
  async jsonAt(run_id: string, last: number): Promise<string> {
    const execution = this.#active.local(run_id);
    if (execution?.log.row.last === last && !execution.replaying) return JSON.stringify(execution.run);
    return JSON.stringify(await foldStored(this.#store, { ...(await this.row(run_id)), last, status: 'awaiting' }));
  }

  onChange(run_id: string, callback: () => void): () => void {
    this.#changes.on(run_id, callback);
    this.#listenerCount += 1;
    // Writes before the node follows the run are found by reading it again.
    const unfollow = this.#options.followed.add(run_id, callback);
    let listens = true;
    return () => {
      if (!listens) return;
      listens = false;
      unfollow();
      this.#changes.off(run_id, callback);
      this.#listenerCount -= 1;
    };
  }

  /** Any run may have changed: all readers of runs of other processes read again. */
  notifyAll(): void {
    for (const run_id of this.#changes.eventNames()) this.#changes.emit(String(run_id));
  }

  /** Notifies the readers of a run that is not in memory here. */
  #notify(run_id: string): void {
    // The emitter looks its listeners up by the run's id. Without any, no id gets into that table.
    if (this.#listenerCount > 0) this.#changes.emit(run_id);
  }
}
