import { EventEmitter } from 'eventemitter3';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Delivery } from '../../src/core/ports/outbox.ts';
import type { Write } from '../../src/core/ports/run-store.ts';
import type { EngineEvents } from '../../src/engine/engine-events.ts';
import { type Attempt, Deliverer, type SendWebhook } from '../../src/engine/webhooks/deliverer.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { delivery, webhooks } from '../stores/contract-outbox.ts';
import { ownedRow } from '../stores/contract-owners.ts';
import { deferred } from '../support/deferred.ts';
import { warningsOfNode } from '../support/warnings.ts';

describe('the deliverer', () => {
  // Its periodic checks never come, so what a test expects does not wait for one.
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
  });

  it('sends a webhook behind thousands to a receiver that answers nothing', async () => {
    const store = new MemoryStore();
    const slow = Array.from({ length: 5_000 }, () => delivery(0, { url: 'https://slow.example/' }));
    const behind = delivery(1, { url: 'https://quick.example/' });
    await store.commit([...slow, behind].map((one) => webhooks([one])));
    const { promise: sent, resolve: onSent } = deferred();
    const send: SendWebhook = async ({ url }, signal) => {
      if (url === behind.url) {
        onSent();
        return { status: 204, error: null };
      }
      return unanswered(signal);
    };
    startDeliverer(store, send);
    await sent;
  });

  it('sends a webhook of an owner while all receivers of others answer nothing', async () => {
    const warnings = warningsOfNode();
    const store = new MemoryStore();
    const ofHost = (owner: string, name: string): Write[] =>
      Array.from({ length: 16 }, (_, port) =>
        Array.from({ length: 16 }, () => delivery(0, { url: `https://${name}.example:${8000 + port}/` })),
      )
        .flat()
        .map((one) => webhooks([one], ownedRow(owner)));
    const behind = delivery(1, { url: 'https://quick.example/' });
    await store.commit([...ofHost('ann', 'slow'), ...ofHost('bob', 'slower'), webhooks([behind], ownedRow('cy'))]);
    const begun: Delivery[] = [];
    const sent = new Promise<void>((resolve) => {
      startDeliverer(store, async (one, signal) => {
        begun.push(one);
        if (one.url === behind.url) resolve();
        return unanswered(signal);
      });
    });
    await sent;
    const perOrigin = begun.map(({ url }) => begun.filter((one) => one.url === url).length);
    expect(Math.max(...perOrigin)).toBe(8);
    // Each request under way listens to the signal that ends them all.
    expect(await warnings()).toEqual([]);
  });

  it('sends hundreds to one receiver without a pause', async () => {
    const store = new MemoryStore();
    const all = Array.from({ length: 1_000 }, () => webhooks([delivery(0)]));
    await store.commit(all);
    let sent = 0;
    await new Promise<void>((resolve) => {
      startDeliverer(store, async () => {
        sent += 1;
        if (sent === all.length) resolve();
        return { status: 204, error: null };
      });
    });
  });

  it('sends nothing of an owner that was erased while it waited', async () => {
    const store = new MemoryStore();
    const row = ownedRow('ann');
    await store.commit([
      webhooks(
        Array.from({ length: 30 }, (_, index) => delivery(0, { url: `https://slow.example/${index}` })),
        row,
      ),
    ]);
    const answers: (() => void)[] = [];
    let begun = 0;
    const full = new Promise<void>((resolve) => {
      startDeliverer(store, async () => {
        begun += 1;
        if (begun === 8) resolve();
        if (begun <= 8) await new Promise<void>((answer) => answers.push(answer));
        return { status: 204, error: null };
      });
    });
    await full;
    await store.removeSession(row.session_id);
    while (await store.sweep({ keys: '' }));
    for (const answer of answers) answer();
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toBe(8);
  });

  it('repeats an attempt in time where the clock was set back by an hour meanwhile', async () => {
    vi.useRealTimers();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
    const store = new MemoryStore();
    await store.commit([webhooks([delivery(0)])]);
    const events = new EventEmitter<EngineEvents>();
    const ended = (outcome: string): Promise<void> =>
      new Promise((resolve) => {
        events.on('delivery', (one) => one === outcome && resolve());
      });
    const [retried, delivered] = [ended('retried'), ended('delivered')];
    let sent = 0;
    startDeliverer(store, async () => ({ status: ++sent === 1 ? 503 : 204, error: null }), { events });
    await retried;
    const setTo = Date.now() - 3_600_000;
    vi.setSystemTime(setTo);
    await checkedUntil(delivered);
    expect(sent).toBe(2);
    expect(Date.now() - setTo).toBeLessThan(600_000);
  });

  it('sends what waits for other attempts of its owner when one of them ends', async () => {
    const store = new MemoryStore();
    const urls = Array.from({ length: 100 }, (_, index) => `https://r${index}.example/`);
    await store.commit(urls.map((url) => webhooks([delivery(0, { url })])));
    const sent = new Set<string>();
    let most = 0;
    let active = 0;
    await new Promise<void>((resolve) => {
      startDeliverer(store, async ({ url }) => {
        active += 1;
        most = Math.max(most, active);
        await new Promise((done) => setImmediate(done));
        active -= 1;
        sent.add(url);
        if (sent.size === urls.length) resolve();
        return { status: 204, error: null };
      });
    });
    expect(most).toBe(64);
  });
});

function startDeliverer(
  store: MemoryStore,
  send: SendWebhook,
  { events = new EventEmitter<EngineEvents>() } = {},
): void {
  const onFailure = (error: unknown): void => expect.unreachable(String(error));
  const options = { store, send, forms: {}, firstPause: 1, offAfter: 0, events, onFailure };
  const deliverer = new Deliverer(options);
  onTestFinished(() => deliverer.stop());
  deliverer.start();
  deliverer.wake();
}

/** Lets the time of the periodic checks pass until a promise resolves. */
async function checkedUntil(done: Promise<void>): Promise<void> {
  let going = true;
  void done.then(() => {
    going = false;
  });
  while (going) {
    vi.advanceTimersByTime(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const unanswered = (signal: AbortSignal): Promise<Attempt> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve({ status: null, error: 'stopped' }));
  });
