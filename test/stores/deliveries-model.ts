import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Delivery, DeliveryResult } from '../../src/core/ports/outbox.ts';
import { type RunRow, rowAfter, type Write } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { newId } from '../../src/engine/ids.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { append, fresh } from './writes.ts';

/** Milliseconds after which a claim is over. */
const claimTime = 10;
const base = Date.UTC(2001, 0, 1);

const command = fc.record({
  kind: fc.constantFrom('add', 'add', 'claim', 'claim', 'finish', 'finish', 'replay', 'remove', 'sweep', 'list'),
  run: fc.nat(2),
  url: fc.nat(1),
  pick: fc.nat(9),
  wait: fc.nat(8),
  state: fc.constantFrom('pending', 'delivered', 'failed'),
} as const);
type Command = typeof command extends fc.Arbitrary<infer C> ? C : never;

/** Does the same to a store and to the memory store, and expects the same answers. */
class Pair {
  readonly #store: Store;
  readonly #model = new MemoryStore();
  #runs: RunRow[] = Array.from({ length: 3 }, () => fresh());
  readonly #added: string[] = [];
  #claims: Delivery[] = [];
  #now = 0;
  /** The failures of a URL stay. */
  readonly #origin = `https://${newId()}.example`;

  constructor(store: Store) {
    this.#store = store;
  }

  async perform({ kind, run, url, pick, wait, state }: Command): Promise<void> {
    this.#now += wait;
    const claim = this.#claims[pick % Math.max(1, this.#claims.length)];
    const delivery_id = this.#added[pick % Math.max(1, this.#added.length)] ?? 'unknown';
    if (kind === 'add') await this.#commit([this.#writeTo(run, url)]);
    else if (kind === 'claim') await this.#claim();
    else if (kind === 'finish' && claim !== undefined) await this.#finish(claim, state, pick);
    else if (kind === 'replay') await this.#both((store) => store.outbox.replayDelivery(delivery_id, this.#at(wait)));
    else if (kind === 'sweep') await this.#sweep();
    else if (kind === 'remove' && pick === 0) await this.#end(run);
    else await this.#list(run, state, pick);
  }

  /** Ends all runs, and expects that nothing is left behind. */
  async close(): Promise<void> {
    for (let n = 0; n < this.#runs.length; n += 1) await this.#end(n);
    this.#now += 1e9;
    expect(await this.#claim()).toEqual([]);
    expect(await this.#both((store) => store.outbox.pendingDeliveries(100))).toEqual({ count: 0, oldest: null });
  }

  #at(milliseconds = 0): string {
    return new Date(base + this.#now + milliseconds).toISOString();
  }

  async #both<T>(ask: (store: Store) => Promise<T>): Promise<T> {
    const [answer, expected] = [await ask(this.#store), await ask(this.#model)];
    expect(answer).toEqual(expected);
    return expected;
  }

  async #commit(writes: readonly Write[]): Promise<void> {
    await this.#both((store) => store.commit(writes));
    for (const row of writes.map(rowAfter))
      this.#runs = this.#runs.map((old) => (old.run_id === row.run_id ? row : old));
  }

  #writeTo(run: number, url: number): Write {
    const delivery_id = newId();
    this.#added.unshift(delivery_id);
    const row = this.#runs[run] ?? fresh();
    const one = { delivery_id, url: `${this.#origin}/${url}`, target: null, type: 'run.awaiting', body: '{}' };
    return append(row, ['1'], { deliveries: [{ ...one, created_at: this.#at() }] });
  }

  /** Deliveries that are due at the same time may come in any order. */
  async #claim(): Promise<Delivery[]> {
    const found = await this.#both(async (store) => {
      const claimed = await store.outbox.claimDeliveries(this.#at(), this.#at(claimTime), 100);
      return claimed.toSorted((a, b) => (a.delivery_id < b.delivery_id ? -1 : 1));
    });
    this.#claims = [...found, ...this.#claims].slice(0, 10);
    return found;
  }

  async #finish(claim: Delivery, state: Delivery['state'], pick: number): Promise<void> {
    const attempted_at = state === 'failed' && pick === 1 ? null : this.#at();
    const end = { attempted_at, status: 500 + pick, error: pick === 0 ? null : `error ${pick}` };
    const result: DeliveryResult =
      state === 'pending' ? { ...end, state, next_at: this.#at(2 * pick) } : { ...end, state };
    await this.#both((store) => store.outbox.finishDelivery(claim, result));
    await this.#both((store) => store.outbox.urlFailures(claim.owner, claim.url));
  }

  async #sweep(): Promise<void> {
    for (const store of [this.#store, this.#model])
      while (await store.sweep({ keys: '', deliveries: this.#at(-20) })) await Promise.resolve();
  }

  async #list(run: number, state: Delivery['state'], pick: number): Promise<void> {
    const run_id = this.#runs[run]?.run_id ?? '';
    await this.#both((store) => store.outbox.deliveries({ run_id }, undefined, 100));
    await this.#both((store) => store.outbox.deliveries({ run_id, state }, undefined, 100));
    await this.#both((store) => store.outbox.pendingDeliveries(1 + pick));
  }

  /** Removes a run with its deliveries, and begins another in its place. */
  async #end(run: number): Promise<void> {
    const row = this.#runs[run] ?? fresh();
    await this.#commit([append({ ...row, status: 'completed', finished_at: this.#at() }, ['2'])]);
    await this.#both((store) => store.remove(row.run_id));
    this.#runs = this.#runs.map((old) => (old === row || old.run_id === row.run_id ? fresh() : old));
  }
}

/** Random operations on deliveries: a store answers as the memory store does. */
export function deliveriesModel(store: () => Store): void {
  it('answers about deliveries as the memory store does, whatever is done with them', {
    timeout: 600_000,
  }, async () => {
    const numRuns = Number(process.env.FC_RUNS ?? (store().watch === undefined ? 100 : 25));
    const check = async (commands: readonly Command[]): Promise<void> => {
      const pair = new Pair(store());
      for (const one of commands) await pair.perform(one);
      await pair.close();
    };
    await fc.assert(fc.asyncProperty(fc.array(command, { maxLength: 40 }), check), { numRuns });
  });
}
