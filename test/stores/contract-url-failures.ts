import { describe, expect, it } from 'vitest';
import { type DeliveryResult, finishedDelivery } from '../../src/core/outbox.ts';
import type { Store } from '../../src/core/store.ts';
import { newId } from '../../src/engine/ids.ts';
import { again, at, dead, delivered, delivery, outboxCalls, webhooks } from './contract-deliveries.ts';
import { ownedRow } from './contract-owners.ts';

const refused: DeliveryResult = { state: 'failed', attempted_at: null, status: null, error: 'it is switched off' };

/** The failures of webhooks' URLs in every store. */
export function urlFailuresContract(store: () => Store): void {
  const { only, claim, one, settleAll } = outboxCalls(store);

  describe('with URLs that fail', () => {
    it('counts the failed attempts to a URL of an owner, until one succeeds or a delivery is replayed', async () => {
      const url = `https://${newId()}.example/${'long'.repeat(1_000)}`;
      const [a, b, c, d] = [delivery(1, { url }), delivery(2, { url }), delivery(3, { url }), delivery(4, { url })];
      const owner = `key:fails-${newId()}`;
      const failures = (of: string | null = owner, to = url) => store().urlFailures(of, to);
      await only([webhooks([a], ownedRow(owner)), webhooks([d])]);
      expect(await failures()).toBeUndefined();
      await store().finishDelivery(await one(1, 5), again(10, 3));
      expect(await failures()).toEqual({ attempts: 1, since: at(3), last_at: at(3) });
      await store().finishDelivery(await one(4, 5), again(1e6, 4));
      expect(await failures(null)).toEqual({ attempts: 1, since: at(4), last_at: at(4) });
      await store().finishDelivery(await one(10, 20), { ...dead, attempted_at: at(12) });
      expect(await failures()).toEqual({ attempts: 2, since: at(3), last_at: at(12) });
      await only([webhooks([b], ownedRow(owner))]);
      const given = await one(12, 20);
      expect(await store().finishDelivery(given, refused)).toBe(true);
      expect(await store().delivery(b.delivery_id)).toEqual(finishedDelivery(given, refused));
      expect(await store().delivery(b.delivery_id)).toMatchObject({ state: 'failed', attempt: 0 });
      // Another node may be slower to record an earlier attempt.
      await only([webhooks([c], ownedRow(owner))]);
      await store().finishDelivery(await one(12, 20), again(13, 11));
      expect(await failures()).toEqual({ attempts: 3, since: at(3), last_at: at(12) });
      expect(await failures(owner, `${url}/`)).toBeUndefined();
      expect(await failures(`${owner}0`)).toBeUndefined();
      await store().finishDelivery(await one(13, 20), delivered);
      expect(await failures()).toBeUndefined();
      expect(await failures(null)).toMatchObject({ attempts: 1 });
      await store().replayDelivery(c.delivery_id, at(14));
      const stale = await one(14, 15);
      const fresh = await one(15, 20);
      expect(await store().finishDelivery(stale, dead)).toBe(false);
      expect(await failures()).toBeUndefined();
      await store().finishDelivery(fresh, dead);
      expect(await failures()).toMatchObject({ attempts: 1 });
      await store().replayDelivery(a.delivery_id, at(16));
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
          await store().finishDelivery(found, { ...dead, attempted_at: at(second) });
      }
      const counted = async (owner = ''): Promise<number> => {
        const found = await Promise.all(urls.map((url) => store().urlFailures(owner, url)));
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
