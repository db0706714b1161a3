import { describe, expect, it } from 'vitest';
import { newDelivery } from '../../src/core/ports/outbox.ts';
import type { RunNotification } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { faulty, type Method, methods, newPlan } from '../support/faulty-store.ts';
import { append, end, fresh } from './writes.ts';

describe('a faulty store', () => {
  const first = append(fresh(), ['1']);
  const { run_id, session_id } = first.row;
  const added = { delivery_id: 'd', url: 'https://a', target: null, type: 'run.failed', body: '{}', created_at: '' };
  const delivery = newDelivery(added, first.row);

  it('rejects the planned calls of each method, and then passes calls on', async () => {
    const inner = new MemoryStore();
    const plan = newPlan();
    for (const name of methods) plan.faults[name] = { fails: 2, times: 2 };
    const store = faulty(inner, plan);
    const asked: Record<Method, (from: Store) => Promise<unknown>> = {
      commit: (from) => from.commit([append(fresh(), ['1'])]),
      run: (from) => from.run(run_id),
      input: (from) => from.input(run_id),
      events: (from) => from.events(run_id, 0, 10),
      journal: (from) => from.journal(run_id),
      runs: (from) => from.runs({ session_id }, undefined, 10),
      runsByStatusTime: (from) => from.runsByStatusTime({ agent_names: ['a'] }, undefined, 10),
      countRuns: (from) => from.countRuns({ agent_names: ['a'] }),
      compareAndSet: (from) => from.compareAndSet('a', 'targets', null, null),
      unfinished: (from) => from.unfinished(session_id, '', 10),
      due: (from) => from.due('', 10),
      count: (from) => from.count(session_id),
      openRuns: (from) => from.openRuns(),
      key: (from) => from.key('a', 'b'),
      session: (from) => from.session(session_id),
      resources: (from) => from.resources(['a']),
      figures: (from) => from.figures(['a']),
      claimDeliveries: (from) => from.outbox.claimDeliveries('', '', 10),
      finishDelivery: (from) =>
        from.outbox.finishDelivery(delivery, {
          state: 'failed',
          attempted_at: '',
          status: 500,
          error: 'the receiver failed',
        }),
      delivery: (from) => from.outbox.delivery('a'),
      deliveries: (from) => from.outbox.deliveries({ run_id }, undefined, 10),
      pendingDeliveries: (from) => from.outbox.pendingDeliveries(10),
      urlFailures: (from) => from.outbox.urlFailures(null, 'https://a'),
      replayDelivery: (from) => from.outbox.replayDelivery('a', ''),
      sessionsOf: (from) => from.sessionsOf('key:a', 10),
      remove: (from) => from.remove(run_id),
      removeSession: (from) => from.removeSession(session_id),
      removeOwner: (from) => from.removeOwner('key:a'),
      sweep: (from) => from.sweep({ keys: '' }),
    };
    expect(Object.keys(asked).toSorted()).toEqual(methods.toSorted());
    await inner.commit([first]);
    for (const name of methods) {
      expect(await asked[name](store)).toEqual(await asked[name](inner));
      for (const call of [2, 3]) {
        await expect(asked[name](store)).rejects.toThrow(`call ${call} of ${name} failed, as planned`);
      }
      expect(await asked[name](store)).toEqual(await asked[name](inner));
      expect(plan.calls[name]).toBe(4);
    }
    await store.close();
  });

  it('applies nothing of a commit that fails with the planned error, until the plan changes', async () => {
    const inner = new MemoryStore();
    const plan = newPlan({ commit: { fails: 1, times: Number.POSITIVE_INFINITY, error: new Error('away') } });
    const store = faulty(inner, plan);
    for (let call = 0; call < 3; call += 1) await expect(store.commit([first])).rejects.toThrow('away');
    expect(await inner.run(run_id)).toBeUndefined();
    plan.faults = {};
    expect(await store.commit([first, end(first.row, 'completed')])).toEqual(['taken', 'taken']);
  });

  it('delays calls and results as planned, and drops notifications', async () => {
    const order: string[] = [];
    let watcher: ((moves: readonly RunNotification[] | undefined) => void) | undefined;
    const inner = Object.assign(new MemoryStore(), {
      watch: async (moved: typeof watcher) => {
        watcher = moved;
        return { follow: async () => {}, unfollow: () => {}, close: async () => {} };
      },
    });
    const plan = newPlan({
      run: { before: async () => void order.push('before'), after: async () => void order.push('after') },
    });
    const store = faulty(inner, plan);
    await store.run(run_id);
    expect(order).toEqual(['before', 'after']);
    const heard: unknown[] = [];
    await store.watch?.((moves) => heard.push(moves));
    plan.drops = (moves) => moves !== undefined;
    watcher?.([{ run_id, epoch: 1, last: 1, final: false, changed: true, forwarded: false, waits: false }]);
    watcher?.(undefined);
    expect(heard).toEqual([undefined]);
  });
});
