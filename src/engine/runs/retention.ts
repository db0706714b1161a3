import { setImmediate as nextTurn } from 'node:timers/promises';
import type { RunFilter } from '../../core/ports/run-lists.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Registry } from '../agents/registry.ts';
import { firstIdAt } from '../ids.ts';
import type { Limits, RunTtlByOwner } from '../limits.ts';
import { eachPart } from '../store/each-part.ts';

/** Runs of an agent or of an owner that one sweep looks at. */
const page = 100;
/** Each step takes the store a few milliseconds at most. */
const maxSweepSteps = 200;

/**
 * How long final runs are kept, and the removal of what is older, with expired keys, sessions and deliveries. An agent
 * (`run_ttl`) or an owner may keep its runs for a shorter time than the server.
 */
export class Retention {
  readonly #store: Store;
  readonly #registry: Registry;
  readonly #limits: Limits;
  readonly #owners: RunTtlByOwner;
  /** Where the next sweep of an agent or owner continues; missing where it begins with the newest run that is old enough. */
  readonly #cursors = new Map<string, string>();

  constructor(store: Store, registry: Registry, limits: Limits, owners: RunTtlByOwner) {
    this.#store = store;
    this.#registry = registry;
    this.#limits = limits;
    this.#owners = owners;
  }

  /** Milliseconds for which an owner's final runs of an agent are kept; Infinity for no limit. */
  keptFor(agent_name: string, owner: string | null): number {
    const ofOwner = owner === null ? undefined : this.#owners[owner];
    return shortest(this.#limits.runTtl || undefined, this.#registry.find(agent_name)?.options.run_ttl, ofOwner);
  }

  /** Milliseconds for which any final run is kept, unless a client deletes it; Infinity for no limit. */
  keptAtLeast(): number {
    const ofAgents = this.#registry.list().map(({ options }) => options.run_ttl);
    return shortest(this.#limits.runTtl || undefined, ...ofAgents, ...Object.values(this.#owners));
  }

  /** Removes what has expired at a time in milliseconds since 1970, in small steps, while `goesOn` returns true. */
  async sweep(now: number, goesOn: () => boolean): Promise<void> {
    const ago = (milliseconds: number): string => new Date(now - milliseconds).toISOString();
    const { runTtl, idempotencyTtl, sessionTtl, deliveryTtl } = this.#limits;
    const before = {
      keys: idempotencyTtl > 0 ? ago(idempotencyTtl) : '',
      ...(runTtl > 0 && { runs: ago(runTtl) }),
      ...(sessionTtl > 0 && { sessions: ago(sessionTtl) }),
      ...(deliveryTtl > 0 && { deliveries: ago(deliveryTtl) }),
    };
    for (let step = 0; step < maxSweepSteps && goesOn() && (await this.#store.sweep(before)); step += 1) {
      await nextTurn();
    }
    // Last, because a list of runs fails where its part of the store is away.
    await eachPart(this.#store, async (part) => {
      for (const { manifest, options } of this.#registry.list()) {
        const { run_ttl } = options;
        if (run_ttl !== undefined) await this.#sweepEarly({ agent_name: manifest.name, part }, now - run_ttl);
      }
      for (const [owner, ttl] of Object.entries(this.#owners)) await this.#sweepEarly({ owner, part }, now - ttl);
    });
  }

  /**
   * Removes the final runs of an agent or owner that are older than a time. A run's id has the time at which it was made, so
   * older runs are found by the index of runs, with one read. Runs that are not final are passed over, a page each sweep.
   */
  async #sweepEarly(filter: RunFilter, time: number): Promise<void> {
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

const shortest = (...times: (number | undefined)[]): number => Math.min(...times.filter((time) => time !== undefined));
