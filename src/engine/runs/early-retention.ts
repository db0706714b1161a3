import type { RunFilter, Store } from '../../core/store.ts';
import { firstIdAt } from '../ids.ts';
import type { Limits, RunTtlByOwner } from '../limits.ts';
import type { Registry } from '../registry.ts';

/** Runs of an agent or of an owner that one sweep looks at. */
const page = 100;

/** Milliseconds for which any final run is kept, unless a client deletes it; Infinity for no limit. */
export function keptAtLeast(registry: Registry, { runTtl }: Limits, owners: RunTtlByOwner): number {
  const ofAgents = registry.list().map(({ options }) => options.run_ttl);
  const all = [runTtl || undefined, ...ofAgents, ...Object.values(owners)];
  return Math.min(...all.filter((time) => time !== undefined));
}

/**
 * Removes final runs of the agents (`run_ttl`) and owners that keep theirs for a shorter time than the server, with their
 * messages. A run's id has the time at which it was made, so older runs are found by the index of runs. One sweep costs
 * one read of the store for each such agent and owner. Runs that are old and not final are passed over, a page each sweep.
 */
export class EarlyRetention {
  readonly #store: Store;
  readonly #registry: Registry;
  readonly #owners: RunTtlByOwner;
  /** Where the next sweep continues; missing where it begins with the newest run that is old enough. */
  readonly #cursors = new Map<string, string>();

  constructor(store: Store, registry: Registry, owners: RunTtlByOwner) {
    this.#store = store;
    this.#registry = registry;
    this.#owners = owners;
  }

  async sweep(now: number): Promise<void> {
    for (const { manifest, options } of this.#registry.list()) {
      if (options.run_ttl !== undefined) await this.#sweep({ agent_name: manifest.name }, now - options.run_ttl);
    }
    for (const [owner, ttl] of Object.entries(this.#owners)) await this.#sweep({ owner }, now - ttl);
  }

  async #sweep(filter: RunFilter, time: number): Promise<void> {
    const key = JSON.stringify(filter);
    const rows = await this.#store.runs(filter, this.#cursors.get(key) ?? firstIdAt(time), page);
    const before = new Date(time).toISOString();
    for (const { run_id, finished_at } of rows) {
      if (finished_at !== null && finished_at < before) await this.#store.remove(run_id);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < page) this.#cursors.delete(key);
    else this.#cursors.set(key, last.run_id);
  }
}
