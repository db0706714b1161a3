import type { Store } from '../../core/store.ts';
import { firstIdAt } from '../ids.ts';
import type { Registry } from '../registry.ts';

/** Runs of an agent that one sweep looks at. */
const page = 100;

/**
 * Removes final runs of the agents that keep theirs for a shorter time than the server (`run_ttl`), with their messages.
 * A run's id has the time at which it was made, so older runs of an agent are found by the index of its runs. One sweep
 * costs one read of the store for each such agent. Runs that are old and not final are passed over, a page each sweep.
 */
export class AgentRetention {
  readonly #store: Store;
  readonly #registry: Registry;
  /** Of each agent, where the next sweep continues; missing where it begins with the newest run that is old enough. */
  readonly #cursors = new Map<string, string>();

  constructor(store: Store, registry: Registry) {
    this.#store = store;
    this.#registry = registry;
  }

  async sweep(now = Date.now()): Promise<void> {
    for (const { manifest, options } of this.#registry.list()) {
      if (options.run_ttl !== undefined) await this.#sweepAgent(manifest.name, now - options.run_ttl);
    }
  }

  async #sweepAgent(agent_name: string, time: number): Promise<void> {
    const from = this.#cursors.get(agent_name) ?? firstIdAt(time);
    const rows = await this.#store.runs({ agent_name }, from, page);
    const before = new Date(time).toISOString();
    for (const { run_id, finished_at } of rows) {
      if (finished_at !== null && finished_at < before) await this.#store.remove(run_id);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < page) this.#cursors.delete(agent_name);
    else this.#cursors.set(agent_name, last.run_id);
  }
}
