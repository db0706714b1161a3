import type { Outbox } from '../../src/core/ports/outbox.ts';
import type { RunNotification } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';

/** The methods of a store and of its outbox, except `watch` and `close`. Claims have no faults. */
export type Method =
  | Exclude<keyof Store, 'watch' | 'checkNotifications' | 'outbox' | 'claims' | 'partitions' | 'close'>
  | keyof Outbox;

/** The faults of the calls of one method. Calls are counted from 1, over the life of the plan. */
interface Fault {
  /** The number of the call that is rejected without any effect. */
  readonly fails?: number;
  /** The number of calls that are rejected from that one on; default 1. */
  readonly times?: number;
  /** The error of rejected calls; default an Error that names the method and the call. */
  readonly error?: unknown;
  /** Called before each call, with its number; its promise delays the call. */
  readonly before?: (call: number) => Promise<void> | void;
  /** Called after each call, with its number; its promise delays the response. */
  readonly after?: (call: number) => Promise<void> | void;
}

/** The faults of a store; may be changed at any time. */
export interface Plan {
  faults: Partial<Record<Method, Fault>>;
  /** Whether a notification is lost; default none. */
  drops?: (notifications: readonly RunNotification[] | undefined) => boolean;
  /** The number of calls of each method; counted by the store. */
  readonly calls: Partial<Record<Method, number>>;
}

export const newPlan = (faults: Plan['faults'] = {}): Plan => ({ faults, calls: {} });

/** Every method of a store, for a test over all of them. */
export const methods = [
  'commit',
  'run',
  'input',
  'events',
  'journal',
  'runs',
  'runsByStatusTime',
  'countRuns',
  'compareAndSet',
  'unfinished',
  'due',
  'count',
  'openRuns',
  'key',
  'session',
  'resources',
  'figures',
  'sessionsOf',
  'claimDeliveries',
  'finishDelivery',
  'delivery',
  'deliveries',
  'pendingDeliveries',
  'urlFailures',
  'replayDelivery',
  'remove',
  'removeSession',
  'removeOwner',
  'sweep',
] as const satisfies readonly Method[];

/** Wraps a store with the faults of a plan. It has `watch` and `claims` if the wrapped store has them. */
export function faulty(store: Store, plan: Plan): Store {
  const call =
    <Args extends unknown[], T>(name: Method, ask: (...args: Args) => Promise<T>, of: Store | Outbox = store) =>
    async (...args: Args): Promise<T> => {
      const call = (plan.calls[name] ?? 0) + 1;
      plan.calls[name] = call;
      const { fails = 0, times = 1, error, before, after } = plan.faults[name] ?? {};
      await before?.(call);
      if (fails > 0 && call >= fails && call < fails + times) {
        throw error ?? new Error(`call ${call} of ${name} failed, as planned`);
      }
      const answer = await ask.apply(of, args);
      await after?.(call);
      return answer;
    };
  const { outbox } = store;
  return {
    commit: call('commit', store.commit),
    run: call('run', store.run),
    input: call('input', store.input),
    events: call('events', store.events),
    journal: call('journal', store.journal),
    runs: call('runs', store.runs),
    runsByStatusTime: call('runsByStatusTime', store.runsByStatusTime),
    countRuns: call('countRuns', store.countRuns),
    compareAndSet: call('compareAndSet', store.compareAndSet),
    unfinished: call('unfinished', store.unfinished),
    due: call('due', store.due),
    count: call('count', store.count),
    openRuns: call('openRuns', store.openRuns),
    key: call('key', store.key),
    session: call('session', store.session),
    resources: call('resources', store.resources),
    figures: call('figures', store.figures),
    outbox: {
      claimDeliveries: call('claimDeliveries', outbox.claimDeliveries, outbox),
      finishDelivery: call('finishDelivery', outbox.finishDelivery, outbox),
      delivery: call('delivery', outbox.delivery, outbox),
      deliveries: call('deliveries', outbox.deliveries, outbox),
      pendingDeliveries: call('pendingDeliveries', outbox.pendingDeliveries, outbox),
      urlFailures: call('urlFailures', outbox.urlFailures, outbox),
      replayDelivery: call('replayDelivery', outbox.replayDelivery, outbox),
    },
    sessionsOf: call('sessionsOf', store.sessionsOf),
    remove: call('remove', store.remove),
    removeSession: call('removeSession', store.removeSession),
    removeOwner: call('removeOwner', store.removeOwner),
    sweep: call('sweep', store.sweep),
    close: () => store.close(),
    ...(store.claims && { claims: store.claims }),
    ...(store.watch && {
      watch: (notify) =>
        store.watch?.((notifications) => {
          if (plan.drops?.(notifications) !== true) notify(notifications);
        }) ?? Promise.reject(new Error('the store cannot be watched')),
    }),
  };
}
