import { describe, expect, it } from 'vitest';
import {
  type Delivery,
  type DeliveryResult,
  finishedDelivery,
  type NewDelivery,
  newDelivery,
  replayedDelivery,
} from '../../src/core/ports/outbox.ts';
import type { Outcome, RunRow, Write } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { newId } from '../../src/engine/ids.ts';
import { ownedRow } from './contract-owners.ts';
import { deliveriesModel } from './deliveries-model.ts';
import { expectSteady, shortest } from './steady-cost.ts';
import { append, end, fresh } from './writes.ts';

/** A time of the tests; those before 1970 would have negative scores. */
export const at = (second: number): string => new Date(Date.UTC(2001, 0, 1) + second * 1_000).toISOString();

/** A delivery that a write adds, due at a second of the tests. */
export const delivery = (second: number, more: Partial<NewDelivery> = {}): NewDelivery => ({
  delivery_id: newId(),
  url: 'https://receiver.example/hook',
  target: null,
  type: 'run.completed',
  body: '{"type":"run.completed"}',
  created_at: at(second),
  ...more,
});

const delivered: DeliveryResult = { state: 'delivered', attempted_at: at(1), status: 204, error: null };
const dead: DeliveryResult = {
  state: 'failed',
  attempted_at: at(1),
  status: null,
  error: 'no route to the host',
};
export const again = (second: number, attempted = 1): DeliveryResult => ({
  state: 'pending',
  attempted_at: at(attempted),
  next_at: at(second),
  status: 503,
  error: 'the receiver answered 503',
});

/** A final run with deliveries. */
export const webhooks = (deliveries: readonly NewDelivery[], row: RunRow = fresh()): Write =>
  append({ ...row, status: 'completed', finished_at: at(0) }, ['1'], { deliveries });

/** Short calls of the outbox of a store, for its tests. */
function outboxCalls(store: () => Store) {
  const only = async (writes: readonly Write[]): Promise<Outcome[]> => store().commit(writes);
  const claim = (now: number, until: number, limit = 100): Promise<Delivery[]> =>
    store().outbox.claimDeliveries(at(now), at(until), limit);
  const idsOf = (found: readonly { readonly delivery_id: string }[]): string[] =>
    found.map(({ delivery_id }) => delivery_id);
  const one = async (now: number, until: number): Promise<Delivery> => {
    const [found, ...others] = await claim(now, until);
    expect(others).toEqual([]);
    if (found === undefined) throw new Error('no delivery is due');
    return found;
  };
  /** Ends all that is due, so that the next test finds only its own deliveries. */
  const settleAll = async (): Promise<void> => {
    for (let found = await claim(1e9, 2e9); found.length > 0; found = await claim(1e9, 2e9)) {
      for (const claimed of found) expect(await store().outbox.finishDelivery(claimed, delivered)).toBe(true);
    }
  };
  return { only, claim, idsOf, one, settleAll };
}

/** Webhooks in every store: when they are claimed, in which order, and how long they are kept. */
export function outboxContract(store: () => Store): void {
  urlFailures(store);
  deliveriesModel(store);
  const { only, claim, idsOf, one, settleAll } = outboxCalls(store);

  describe('with webhooks', () => {
    it('adds the deliveries of a write, and none of a refused one', async () => {
      const [a, b, c] = [delivery(1), delivery(2), delivery(3)];
      const first = append(ownedRow('key:hooks'), ['1'], { deliveries: [a] });
      const next = append({ ...first.row, status: 'awaiting' }, ['2'], { deliveries: [b] });
      const stale = append({ ...first.row, status: 'failed' }, ['2'], { deliveries: [c] });
      expect(await only([first, next, stale])).toEqual(['taken', 'taken', 'fenced']);
      expect(await store().outbox.delivery(a.delivery_id)).toEqual(newDelivery(a, first.row));
      expect(await store().outbox.delivery(b.delivery_id)).toEqual(newDelivery(b, first.row));
      expect(await store().outbox.delivery(c.delivery_id)).toBeUndefined();
      expect(await store().outbox.delivery('unknown')).toBeUndefined();
      expect(idsOf(await store().outbox.deliveries({ run_id: first.row.run_id }, undefined, 10))).toEqual(
        idsOf([b, a]),
      );
      await settleAll();
      await only([end({ ...next.row }, 'completed')]);
    });

    it('rejects a write with the id of an earlier delivery, and no other write', async () => {
      const known = delivery(1);
      const [first, twice, other] = [webhooks([known]), webhooks([delivery(1), known]), webhooks([delivery(2)])];
      expect(await only([first])).toEqual(['taken']);
      const outcomes = await only([twice, other]);
      expect(outcomes).toEqual([{ rejected: expect.anything() }, 'taken']);
      expect(await store().run(twice.row.run_id)).toBeUndefined();
      expect(await store().outbox.deliveries({ run_id: twice.row.run_id }, undefined, 10)).toEqual([]);
      await settleAll();
    });

    it('claims what is due, the first due first, and nothing twice', async () => {
      const [a, b, c, d] = [delivery(3), delivery(1), delivery(2), delivery(9)];
      await only([a, b, c, d].map((one) => webhooks([one])));
      expect(await claim(0, 60)).toEqual([]);
      expect(idsOf(await claim(3, 60, 2))).toEqual(idsOf([b, c]));
      expect(idsOf(await claim(3, 60, 2))).toEqual(idsOf([a]));
      expect(await claim(3, 60)).toEqual([]);
      expect(idsOf(await claim(9, 60))).toEqual(idsOf([d]));
      await settleAll();
    });

    it('claims again what was not finished in time, and refuses the result of the first claim', async () => {
      const hook = delivery(1);
      const write = webhooks([hook]);
      await only([write]);
      const first = await one(1, 10);
      expect(first).toEqual({ ...newDelivery(hook, write.row), claimed_until: at(10) });
      expect(await claim(9, 20)).toEqual([]);
      const second = await one(10, 20);
      expect(second).toEqual({ ...first, claimed_until: at(20) });
      expect(await store().outbox.finishDelivery(first, delivered)).toBe(false);
      expect(await store().outbox.delivery(hook.delivery_id)).toEqual(second);
      expect(await store().outbox.finishDelivery(second, delivered)).toBe(true);
      expect(await store().outbox.delivery(hook.delivery_id)).toEqual(finishedDelivery(second, delivered));
      expect(await store().outbox.finishDelivery(second, dead)).toBe(false);
      expect(await claim(1e6, 2e6)).toEqual([]);
    });

    it('tries a delivery again when its next attempt is due, until there are no more attempts', async () => {
      const hook = delivery(1);
      await only([webhooks([hook])]);
      const first = await one(1, 10);
      expect(await store().outbox.finishDelivery(first, again(30))).toBe(true);
      expect(await store().outbox.delivery(hook.delivery_id)).toEqual(finishedDelivery(first, again(30)));
      expect(await claim(29, 60)).toEqual([]);
      const second = await one(30, 60);
      expect(second).toMatchObject({ attempt: 1, last_status: 503, next_at: at(30) });
      expect(await store().outbox.finishDelivery(second, dead)).toBe(true);
      expect(await store().outbox.delivery(hook.delivery_id)).toEqual(finishedDelivery(second, dead));
      expect(await claim(1e6, 2e6)).toEqual([]);
    });

    it('keeps the order of a run’s deliveries to one URL, and lets no other wait for them', async () => {
      const url = 'https://other.example/';
      const [a, b, c, d] = [delivery(1), delivery(2), delivery(1), delivery(3)];
      const elsewhere = delivery(2, { url });
      const first = append(fresh(), ['1'], { deliveries: [a, b] });
      const next = append({ ...first.row, status: 'awaiting' }, ['2'], { deliveries: [c, elsewhere] });
      const other = webhooks([d]);
      await only([first, next, other]);
      const found = await claim(5, 60);
      expect(idsOf(found)).toEqual(idsOf([a, elsewhere, d]));
      for (const claimed of found.slice(1)) await store().outbox.finishDelivery(claimed, delivered);
      expect(await claim(50, 60)).toEqual([]);
      const expired = await one(60, 70);
      expect(expired.delivery_id).toBe(a.delivery_id);
      await store().outbox.finishDelivery(expired, again(100));
      expect(await claim(99, 200)).toEqual([]);
      await store().outbox.finishDelivery(await one(100, 200), dead);
      for (const next of [b, c]) {
        const claimed = await one(101, 200);
        expect(claimed.delivery_id).toBe(next.delivery_id);
        expect(await claim(101, 200)).toEqual([]);
        await store().outbox.finishDelivery(claimed, delivered);
      }
      const late = delivery(102);
      const last = end(next.row, 'completed', { deliveries: [late] });
      await only([last]);
      expect((await one(102, 200)).delivery_id).toBe(late.delivery_id);
      await settleAll();
    });

    it('replays a delivery that has ended, at the end of its line', async () => {
      const [a, b] = [delivery(1), delivery(2)];
      const run = webhooks([a, b]);
      await only([run]);
      expect(await store().outbox.replayDelivery(a.delivery_id, at(5))).toBe(false);
      const failed = await one(1, 10);
      await store().outbox.finishDelivery(failed, dead);
      const ended = finishedDelivery(failed, dead);
      expect(await store().outbox.replayDelivery(a.delivery_id, at(5))).toBe(true);
      expect(await store().outbox.delivery(a.delivery_id)).toEqual(replayedDelivery(ended, at(5)));
      expect(await store().outbox.replayDelivery(a.delivery_id, at(5))).toBe(false);
      for (const { delivery_id } of [b, a]) {
        const claimed = await one(6, 10);
        expect(claimed.delivery_id).toBe(delivery_id);
        await store().outbox.finishDelivery(claimed, delivered);
      }
      expect(await store().outbox.delivery(a.delivery_id)).toMatchObject({
        state: 'delivered',
        attempt: 1,
        last_status: 204,
      });
      expect(await store().outbox.replayDelivery(a.delivery_id, at(20))).toBe(true);
      expect(await claim(19, 30)).toEqual([]);
      expect((await one(20, 30)).delivery_id).toBe(a.delivery_id);
      expect(await store().outbox.replayDelivery('unknown', at(5))).toBe(false);
      await settleAll();
    });

    it('lists deliveries newest first, by run, owner and state, from any on', async () => {
      const owner = `key:lister-${newId()}`;
      const hooks = Array.from({ length: 4 }, () => delivery(1));
      const runs = [ownedRow(owner), ownedRow(owner), ownedRow(`${owner}0`), fresh()];
      await only(runs.map((row, n) => webhooks(hooks.slice(n, n + 1), row)));
      const [a, b, c, d] = idsOf(hooks);
      const claimed = await claim(1, 10);
      expect(claimed).toHaveLength(4);
      for (const one of claimed.slice(0, 3))
        await store().outbox.finishDelivery(one, one.delivery_id === a ? dead : delivered);
      const listed = async (...args: Parameters<Store['outbox']['deliveries']>) =>
        idsOf(await store().outbox.deliveries(...args));
      expect(await listed({}, undefined, 4)).toEqual([d, c, b, a]);
      expect(await listed({}, d, 2)).toEqual([c, b]);
      expect(await listed({ owner }, undefined, 10)).toEqual([b, a]);
      expect(await listed({ owner }, b, 10)).toEqual([a]);
      expect(await listed({ owner, state: 'failed' }, undefined, 10)).toEqual([a]);
      expect(await listed({ owner, state: 'delivered' }, undefined, 10)).toEqual([b]);
      expect(await listed({ owner, state: 'pending' }, undefined, 10)).toEqual([]);
      expect(await listed({ state: 'pending' }, undefined, 10)).toEqual([d]);
      expect((await listed({ state: 'delivered' }, undefined, 10)).slice(0, 2)).toEqual([c, b]);
      expect((await listed({ state: 'failed' }, b, 1))[0]).toBe(a);
      const run_id = runs[0]?.run_id ?? '';
      expect(await listed({ run_id }, undefined, 10)).toEqual([a]);
      expect(await listed({ run_id, owner, state: 'failed' }, undefined, 10)).toEqual([a]);
      expect(await listed({ run_id, owner: `${owner}0` }, undefined, 10)).toEqual([]);
      expect(await listed({ run_id: 'unknown' }, undefined, 10)).toEqual([]);
      await store().outbox.replayDelivery(a ?? '', at(5));
      expect(await listed({ owner, state: 'failed' }, undefined, 10)).toEqual([]);
      expect(await listed({ owner, state: 'pending' }, undefined, 10)).toEqual([a]);
      await settleAll();
    });

    it('counts the pending deliveries up to a limit, and names the oldest, until they end or are removed', async () => {
      const counted = (limit = 100) => store().outbox.pendingDeliveries(limit);
      expect(await counted()).toEqual({ count: 0, oldest: null });
      const hooks = [delivery(1), delivery(2), delivery(3)];
      const runs = [webhooks(hooks.slice(0, 1)), webhooks(hooks.slice(1))];
      await only(runs);
      const [a = '', b = ''] = idsOf(hooks);
      expect(await counted()).toEqual({ count: 3, oldest: a });
      expect(await counted(2)).toEqual({ count: 2, oldest: a });
      const claimed = await claim(2, 10);
      expect(await counted()).toEqual({ count: 3, oldest: a });
      for (const one of claimed) await store().outbox.finishDelivery(one, one.delivery_id === a ? dead : again(20));
      expect(await counted()).toEqual({ count: 2, oldest: b });
      await store().outbox.replayDelivery(a, at(5));
      expect(await counted()).toEqual({ count: 3, oldest: a });
      await store().remove(runs[1]?.row.run_id ?? '');
      expect(await counted()).toEqual({ count: 1, oldest: a });
      await settleAll();
      expect(await counted()).toEqual({ count: 0, oldest: null });
    });

    it('sweeps old deliveries that have ended, and no others', async () => {
      const hooks = [delivery(1), delivery(2), delivery(3)];
      const many = Array.from({ length: 300 }, () => delivery(0));
      await only([...hooks, ...many].map((hook) => webhooks([hook])));
      const [old, going, recent] = hooks.map(({ delivery_id }) => delivery_id);
      for (const one of await claim(3, 10, 1_000))
        if (one.delivery_id !== going)
          await store().outbox.finishDelivery(one, one.delivery_id === old ? dead : delivered);
      while (await store().sweep({ keys: '', runs: at(1) })) await Promise.resolve();
      expect(await store().outbox.delivery(old ?? '')).toMatchObject({ state: 'failed' });
      while (await store().sweep({ keys: '', deliveries: at(3) })) await Promise.resolve();
      expect(await store().outbox.delivery(old ?? '')).toBeUndefined();
      for (const { delivery_id } of many) expect(await store().outbox.delivery(delivery_id)).toBeUndefined();
      expect(await store().outbox.delivery(going ?? '')).toMatchObject({ state: 'pending' });
      expect(await store().outbox.delivery(recent ?? '')).toMatchObject({ state: 'delivered' });
      await settleAll();
    });

    it('removes the deliveries of a removed run, session and owner', async () => {
      const owner = `key:gone-${newId()}`;
      const rows = [ownedRow(owner), ownedRow(owner), ownedRow(owner), ownedRow(`${owner}0`)];
      const hooks = rows.map(() => [delivery(1), delivery(2)]);
      await only(rows.map((row, n) => webhooks(hooks[n] ?? [], row)));
      const claimed = await claim(1, 10);
      expect(claimed).toHaveLength(4);
      const [ofRun, ofSession, ofOwner, kept] = rows.map(({ run_id }) => run_id);
      const left = async (run_id = ''): Promise<number> =>
        (await store().outbox.deliveries({ run_id }, undefined, 10)).length;
      await store().remove(ofRun ?? '');
      expect(await left(ofRun)).toBe(0);
      await store().removeSession(rows[1]?.session_id ?? '');
      while (await store().sweep({ keys: '' })) await Promise.resolve();
      expect(await left(ofSession)).toBe(0);
      expect(await left(ofOwner)).toBe(2);
      await store().removeOwner(owner);
      expect(await left(ofOwner)).toBe(0);
      expect(await store().outbox.deliveries({ owner }, undefined, 10)).toEqual([]);
      expect(await left(kept)).toBe(2);
      const results = await Promise.all(claimed.map((one) => store().outbox.finishDelivery(one, delivered)));
      expect(results.filter((taken) => taken)).toHaveLength(1);
      expect((await one(2, 10)).run_id).toBe(kept);
      await settleAll();
    });

    it('claims and counts at the same cost, however many wait behind others or have ended', async () => {
      const claimed = async (others: number): Promise<number> => {
        const row = fresh();
        await only([
          webhooks(
            Array.from({ length: others }, () => delivery(1)),
            row,
          ),
        ]);
        await store().outbox.finishDelivery(await one(1, 10), again(1e6));
        await only(Array.from({ length: others }, () => webhooks([delivery(1)])));
        for (let found = await claim(2, 10); found.length > 0; found = await claim(2, 10))
          await Promise.all(found.map((next) => store().outbox.finishDelivery(next, delivered)));
        const work = async (): Promise<void> => {
          const found = await claim(4, 10);
          expect((await store().outbox.pendingDeliveries(10)).count).toBe(10);
          for (const next of found) await store().outbox.finishDelivery(next, delivered);
          expect(found).toHaveLength(5);
        };
        const due = () => only(Array.from({ length: 5 }, () => webhooks([delivery(3)])));
        const best = await shortest(store(), 20, work, due);
        await store().remove(row.run_id);
        while (await store().sweep({ keys: '', deliveries: at(1e9) })) await Promise.resolve();
        return best;
      };
      // To look at all of them would take fifty times as long.
      await expectSteady(claimed, [20, 1_000]);
    });
  });
}

/** Webhooks in a store that is opened twice. */
export function sharedDeliveriesContract(one: () => Store, other: () => Store): void {
  const settled = async (): Promise<void> => {
    for (let found = await one().outbox.claimDeliveries(at(1e9), at(2e9), 100); found.length > 0; ) {
      for (const claimed of found) await one().outbox.finishDelivery(claimed, delivered);
      found = await one().outbox.claimDeliveries(at(1e9), at(2e9), 100);
    }
  };

  it('claims no delivery twice at once, and keeps the order of each run, where both claim', async () => {
    const runs = Array.from({ length: 40 }, () => webhooks(Array.from({ length: 5 }, () => delivery(1))));
    await one().commit(runs);
    const sent = new Map<string, string[]>();
    const going = new Set<string>();
    let left = 200;
    const work = async (store: Store): Promise<void> => {
      while (left > 0) {
        for (const claimed of await store.outbox.claimDeliveries(at(1), at(60), 7)) {
          const { run_id, delivery_id } = claimed;
          expect(going.has(run_id)).toBe(false);
          going.add(run_id);
          await Promise.resolve();
          sent.set(run_id, [...(sent.get(run_id) ?? []), delivery_id]);
          going.delete(run_id);
          left -= 1;
          expect(await store.outbox.finishDelivery(claimed, delivered)).toBe(true);
        }
      }
    };
    await Promise.all([one(), other(), one(), other()].map(work));
    for (const { row, deliveries } of runs) {
      expect(sent.get(row.run_id)).toEqual(deliveries?.map(({ delivery_id }) => delivery_id));
    }
  });

  it('claims again what the other has claimed and not finished in time', async () => {
    const hook = delivery(1);
    await one().commit([webhooks([hook])]);
    const [first] = await one().outbox.claimDeliveries(at(1), at(10), 10);
    expect(await other().outbox.claimDeliveries(at(9), at(20), 10)).toEqual([]);
    const both = await Promise.all([one(), other()].map((store) => store.outbox.claimDeliveries(at(10), at(20), 10)));
    expect(both.flat()).toHaveLength(1);
    if (first === undefined) throw new Error('no delivery is due');
    expect(await one().outbox.finishDelivery(first, again(99))).toBe(false);
    expect(await other().outbox.delivery(hook.delivery_id)).toMatchObject({ attempt: 0, claimed_until: at(20) });
    await settled();
  });

  it('leaves no delivery behind that is added while the other ends the one before it', async () => {
    for (let round = 0; round < 20; round += 1) {
      const [a, b] = [delivery(1), delivery(2)];
      const begun = append(fresh(), ['1'], { deliveries: [a] });
      await one().commit([begun]);
      const [claimed] = await one().outbox.claimDeliveries(at(1), at(60), 10);
      if (claimed === undefined) throw new Error('no delivery is due');
      const result = round % 2 === 0 ? delivered : again(3);
      await Promise.all([
        one().commit([end(begun.row, 'completed', { deliveries: [b] })]),
        other().outbox.finishDelivery(claimed, result),
      ]);
      for (const expected of round % 2 === 0 ? [b] : [a, b]) {
        const [next] = await other().outbox.claimDeliveries(at(3), at(60), 10);
        expect(next?.delivery_id).toBe(expected.delivery_id);
        if (next !== undefined) await one().outbox.finishDelivery(next, delivered);
      }
      expect(await one().outbox.claimDeliveries(at(1e6), at(2e6), 10)).toEqual([]);
    }
  });
}

const refused: DeliveryResult = { state: 'failed', attempted_at: null, status: null, error: 'it is switched off' };

/** The failures of webhooks' URLs in every store. */
function urlFailures(store: () => Store): void {
  const { only, claim, one, settleAll } = outboxCalls(store);

  describe('with URLs that fail', () => {
    it('counts the failed attempts to a URL of an owner, until one succeeds or a delivery is replayed', async () => {
      const url = `https://${newId()}.example/${'long'.repeat(1_000)}`;
      const [a, b, c, d] = [delivery(1, { url }), delivery(2, { url }), delivery(3, { url }), delivery(4, { url })];
      const owner = `key:fails-${newId()}`;
      const failures = (of: string | null = owner, to = url) => store().outbox.urlFailures(of, to);
      await only([webhooks([a], ownedRow(owner)), webhooks([d])]);
      expect(await failures()).toBeUndefined();
      await store().outbox.finishDelivery(await one(1, 5), again(10, 3));
      expect(await failures()).toEqual({ attempts: 1, since: at(3), last_at: at(3) });
      await store().outbox.finishDelivery(await one(4, 5), again(1e6, 4));
      expect(await failures(null)).toEqual({ attempts: 1, since: at(4), last_at: at(4) });
      await store().outbox.finishDelivery(await one(10, 20), { ...dead, attempted_at: at(12) });
      expect(await failures()).toEqual({ attempts: 2, since: at(3), last_at: at(12) });
      await only([webhooks([b], ownedRow(owner))]);
      const given = await one(12, 20);
      expect(await store().outbox.finishDelivery(given, refused)).toBe(true);
      expect(await store().outbox.delivery(b.delivery_id)).toEqual(finishedDelivery(given, refused));
      expect(await store().outbox.delivery(b.delivery_id)).toMatchObject({ state: 'failed', attempt: 0 });
      // Another node may be slower to record an earlier attempt.
      await only([webhooks([c], ownedRow(owner))]);
      await store().outbox.finishDelivery(await one(12, 20), again(13, 11));
      expect(await failures()).toEqual({ attempts: 3, since: at(3), last_at: at(12) });
      expect(await failures(owner, `${url}/`)).toBeUndefined();
      expect(await failures(`${owner}0`)).toBeUndefined();
      await store().outbox.finishDelivery(await one(13, 20), delivered);
      expect(await failures()).toBeUndefined();
      expect(await failures(null)).toMatchObject({ attempts: 1 });
      await store().outbox.replayDelivery(c.delivery_id, at(14));
      const stale = await one(14, 15);
      const fresh = await one(15, 20);
      expect(await store().outbox.finishDelivery(stale, dead)).toBe(false);
      expect(await failures()).toBeUndefined();
      await store().outbox.finishDelivery(fresh, dead);
      expect(await failures()).toMatchObject({ attempts: 1 });
      await store().outbox.replayDelivery(a.delivery_id, at(16));
      expect(await failures()).toBeUndefined();
      await settleAll();
    });

    it('forgets the failures of old attempts, and those of a removed owner', async () => {
      const [old, recent] = [newId(), newId()].map((id) => `key:fails-${id}`);
      const urls = Array.from({ length: 250 }, (_, n) => `https://${n}.example/`);
      const hooks = urls.map((url) => delivery(1, { url }));
      for (const [owner = '', second] of [
        [old, 5],
        [recent, 7],
      ] as const) {
        await only([
          webhooks(
            hooks.map((hook) => ({ ...hook, delivery_id: newId() })),
            ownedRow(owner),
          ),
        ]);
        for (const found of await claim(1, 5, 1_000))
          await store().outbox.finishDelivery(found, { ...dead, attempted_at: at(second) });
      }
      const counted = async (owner = ''): Promise<number> => {
        const found = await Promise.all(urls.map((url) => store().outbox.urlFailures(owner, url)));
        return found.filter((one) => one !== undefined).length;
      };
      expect([await counted(old), await counted(recent)]).toEqual([250, 250]);
      while (await store().sweep({ keys: '', deliveries: at(6) })) await Promise.resolve();
      expect([await counted(old), await counted(recent)]).toEqual([0, 250]);
      await store().removeOwner(recent ?? '');
      expect(await counted(recent)).toBe(0);
      await settleAll();
    });
  });
}
