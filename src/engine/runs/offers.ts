import type { Dispatcher } from '../dispatch/dispatcher.ts';
import type { GroupCommits } from '../log/group-commits.ts';
import type { ActiveRuns } from './active-runs.ts';

/**
 * Offers runs to the dispatcher, which decides which process executes them. Runs that this process dropped because the store
 * failed, or could not enter, are kept here, and offered again.
 */
export class Offers {
  readonly #dispatcher: Dispatcher;
  readonly #active: ActiveRuns;
  readonly #commits: GroupCommits;
  /** The runs that wait for `repeat`, and whether this process had them when the store failed. */
  readonly #postponed = new Map<string, { readonly wasDropped: boolean }>();

  constructor(dispatcher: Dispatcher, active: ActiveRuns, commits: GroupCommits) {
    this.#dispatcher = dispatcher;
    this.#active = active;
    this.#commits = commits;
  }

  offer(run_id: string): void {
    this.#dispatcher.offer([run_id]);
  }

  /** Leaves a run to the next `repeat`, because it could not be entered. */
  postpone(run_id: string): void {
    if (!this.#postponed.has(run_id)) this.#postponed.set(run_id, { wasDropped: false });
  }

  /** Leaves a run to the next `repeat`, because the store failed while this process had the run. */
  drop(run_id: string): void {
    this.#postponed.set(run_id, { wasDropped: true });
  }

  isDropped(run_id: string): boolean {
    return this.#postponed.get(run_id)?.wasDropped === true;
  }

  /** A run goes on, or has ended: it need not be offered again. */
  forget(run_id: string): void {
    this.#postponed.delete(run_id);
  }

  /** Offers the runs that wait for it. Called periodically. */
  repeat(): void {
    if (this.#postponed.size === 0 || this.#active.stopping) return;
    const run_ids = [...this.#postponed.keys()].filter((run_id) => !this.#commits.of(run_id).failing);
    // A local dispatcher gives each run to the executor, which forgets it here.
    if (this.#dispatcher.shared) for (const run_id of run_ids) this.forget(run_id);
    this.#dispatcher.offer(run_ids);
  }
}
