import type { RunNotification, Store } from '../../src/core/store.ts';

/** What a store is asked, beside to be watched and closed. */
export type Method = Exclude<keyof Store, 'watch' | 'close'>;

/** What goes wrong with the calls of one method. Counted from 1, over the life of the plan. */
interface Fault {
  /** The call that is rejected, before anything is done: of a commit nothing is taken. */
  readonly fails?: number;
  /** How many calls are rejected from that one on; default 1. */
  readonly times?: number;
  /** What they are rejected with; default an Error that names the method and the call. */
  readonly error?: unknown;
  /** Called before each call is done, with its number; what it resolves delays the call. */
  readonly before?: (call: number) => Promise<void> | void;
  /** Called after each call is done, with its number; what it resolves delays the answer. */
  readonly after?: (call: number) => Promise<void> | void;
}

/** What goes wrong with a store; may be changed at any time. */
export interface Plan {
  faults: Partial<Record<Method, Fault>>;
  /** Which notifications nobody is told of; default none. */
  drops?: (moves: readonly RunNotification[] | undefined) => boolean;
  /** How often each method was called; filled by the store. */
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
  'unfinished',
  'due',
  'count',
  'key',
  'session',
  'resources',
  'figures',
  'remove',
  'removeSession',
  'sweep',
] as const satisfies readonly Method[];

/** A store that does what another does, but for what a plan says. It is watched where the other one is. */
export function faulty(store: Store, plan: Plan): Store {
  const call =
    <Args extends unknown[], T>(name: Method, ask: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      const call = (plan.calls[name] ?? 0) + 1;
      plan.calls[name] = call;
      const { fails = 0, times = 1, error, before, after } = plan.faults[name] ?? {};
      await before?.(call);
      if (fails > 0 && call >= fails && call < fails + times) {
        throw error ?? new Error(`call ${call} of ${name} failed, as planned`);
      }
      const answer = await ask.apply(store, args);
      await after?.(call);
      return answer;
    };
  return {
    commit: call('commit', store.commit),
    run: call('run', store.run),
    input: call('input', store.input),
    events: call('events', store.events),
    journal: call('journal', store.journal),
    runs: call('runs', store.runs),
    unfinished: call('unfinished', store.unfinished),
    due: call('due', store.due),
    count: call('count', store.count),
    key: call('key', store.key),
    session: call('session', store.session),
    resources: call('resources', store.resources),
    figures: call('figures', store.figures),
    remove: call('remove', store.remove),
    removeSession: call('removeSession', store.removeSession),
    sweep: call('sweep', store.sweep),
    close: () => store.close(),
    ...(store.watch && {
      watch: (moved) =>
        store.watch?.((moves) => {
          if (plan.drops?.(moves) !== true) moved(moves);
        }) ?? Promise.reject(new Error('the store cannot be watched')),
    }),
  };
}
