import type { RunRow, Store } from '../../core/store.ts';
import type { Event } from '../../schema/event.ts';
import { Execution } from '../execution/execution.ts';
import type { JournalEntry } from '../execution/replay.ts';
import type { Services } from '../execution/services.ts';
import type { Commits } from '../log/group-commit.ts';
import { RunLog } from '../log/run-log.ts';
import { linesAfter } from '../log/stored-run.ts';
import type { LiveRuns } from './active-runs.ts';

/** Makes executions of runs that are only in the store. */
export class Revival {
  readonly #store: Store;
  readonly #commits: Commits;
  readonly #services: Services;
  readonly #live: LiveRuns;

  constructor(store: Store, commits: Commits, services: Services, live: LiveRuns) {
    this.#store = store;
    this.#commits = commits;
    this.#services = services;
    this.#live = live;
  }

  /**
   * Takes a run in hand, under a new epoch: whoever had it before can write no more. What is to be started is led
   * through its past first.
   * @throws RivuletError `agent_unknown`, `lost_race`, `store_failed`
   */
  async revive(row: RunRow, change: Partial<RunRow> = {}): Promise<Execution> {
    const agent = this.#services.registry.get(row.agent_name);
    const [[first = '', ...lines], journal, input = []] = await Promise.all([
      linesAfter(this.#store, row, 0),
      this.#store.journal(row.run_id),
      this.#store.input(row.run_id),
    ]);
    const created: Event = JSON.parse(first);
    if (!('run' in created)) throw new Error(`the log of run ${row.run_id} does not begin with its creation`);
    const log = new RunLog(this.#commits, { ...row, ...change, epoch: row.epoch + 1 }, { from: row.epoch });
    const past = { lines, journal: journal.map((line): JournalEntry => JSON.parse(line)) };
    const execution = new Execution(agent, created.run, input, log, this.#services, past);
    await this.#live.enter(execution);
    return execution;
  }
}
