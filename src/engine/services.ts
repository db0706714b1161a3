import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'eventemitter3';
import type { AgentLog } from '../core/agent.ts';
import { errorOf } from '../core/errors.ts';
import type { Store } from '../core/ports/store.ts';
import type { Traces } from '../core/ports/traces.ts';
import { createToEvents } from '../core/to-events.ts';
import type { Registry } from './agents/registry.ts';
import { RunChanges } from './changes/run-changes.ts';
import { ConnectedReaders } from './cluster/connected-readers.ts';
import { ReaderNodes } from './cluster/reader-nodes.ts';
import type { Dispatcher } from './dispatch/dispatcher.ts';
import { LocalDispatcher } from './dispatch/local-dispatcher.ts';
import { SharedDispatcher } from './dispatch/shared-dispatcher.ts';
import type { EngineEvents } from './engine-events.ts';
import type { ExecutionServices } from './execution/execution-services.ts';
import { commitIntervalOf, defaultLimits, type Limits, type RunTtlByOwner } from './limits.ts';
import { GroupCommits } from './log/group-commits.ts';
import { ActiveRuns } from './runs/active-runs.ts';
import { cancelOwed } from './runs/cancel.ts';
import { EngineCounts } from './runs/counts.ts';
import { Idempotency } from './runs/idempotency.ts';
import { Offers } from './runs/offers.ts';
import { Retention } from './runs/retention.ts';
import { RunLookup } from './runs/run-lookup.ts';
import type { RunServices } from './runs/run-services.ts';
import { SessionQueue } from './runs/session-queue.ts';
import { type FetchResource, Sessions } from './sessions.ts';
import { Followed } from './store/followed.ts';
import { storeForAgents, storeForRequests } from './store/store-calls.ts';
import { wireClock } from './time/clocks.ts';
import { withDeliveries } from './webhooks/deliveries.ts';
import { type WebhookOptions, Webhooks } from './webhooks/webhooks.ts';

export interface EngineOptions {
  readonly registry: Registry;
  readonly store: Store;
  /** Default: the one that belongs to the store. */
  readonly dispatcher?: Dispatcher | undefined;
  /** Whether this process executes runs. If not, other nodes of the store have to. Default true. */
  readonly worker?: boolean;
  readonly fetchResource: FetchResource;
  /** Owners that keep their final runs for a shorter time than `runTtl`. Default none. */
  readonly runTtlByOwner?: RunTtlByOwner | undefined;
  /** Default: no webhooks are sent. */
  readonly webhooks?: WebhookOptions | undefined;
  readonly publicUrl: () => string;
  readonly logFor: (run_id: string) => AgentLog;
  /** Whether the messages and tools of model calls are kept, and lines of `context.log`. Default false. */
  readonly capturesContent?: boolean;
  /** Receives errors of the store that belong to no request. */
  readonly onFailure: (error: unknown) => void;
  readonly limits?: Partial<Limits>;
  /** Milliseconds since 1970, for the times of events and messages. Default `Date.now`. */
  readonly clock?: () => number;
  /** Default: nothing is traced. */
  readonly traces?: Traces | undefined;
}

/** The parts of an engine. */
export interface Services extends RunServices {
  readonly changes: RunChanges;
  readonly readers: ConnectedReaders;
  readonly followed: Followed;
}

function dispatcherOf({ store: { claims }, registry, onFailure }: EngineOptions, limits: Limits): Dispatcher {
  if (claims === undefined) return new LocalDispatcher();
  const slots = limits.running || Number.POSITIVE_INFINITY;
  return new SharedDispatcher(claims, {
    slots,
    lease: limits.lease,
    requestTimeout: limits.requestTimeout,
    agents: () => registry.names(),
    onError: onFailure,
  });
}

/** Makes the parts of an engine. None of them does anything before the engine starts. */
export function servicesOf(options: EngineOptions): Services {
  const { registry, fetchResource, publicUrl, logFor, onFailure } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const dispatcher = options.dispatcher ?? dispatcherOf(options, limits);
  const now = wireClock(options.clock ?? (() => Date.now()));
  const store = storeForRequests(options.store, limits.requestTimeout);
  const commits = new GroupCommits(withDeliveries(options.store, now, options.webhooks?.forms), {
    interval: commitIntervalOf(limits, dispatcher.shared),
    requestTimeout: limits.requestTimeout,
    storeTimeout: limits.storeTimeout,
    onFailure,
  });
  const followed = new Followed();
  const { shared } = dispatcher;
  const active = new ActiveRuns(store, commits, { limits, shared });
  const lookup = new RunLookup(store, active, { runTtl: limits.runTtl, followed });
  const events = new EventEmitter<EngineEvents>();
  const counts = new EngineCounts(commits, active, (name) => registry.find(name) !== undefined);
  const changes = new RunChanges(store, { limits, shared, followed, now: () => now(), onFailure });
  const webhooks = new Webhooks(store, options.webhooks, {
    firstPause: limits.webhookRetry,
    offAfter: limits.webhookOffAfter,
    events,
    onFailure,
  });
  const offers = new Offers(dispatcher, active, commits);
  const queue = new SessionQueue(store, {
    commits,
    offers,
    limit: limits.queued,
    stopping: () => active.stopping,
    followed,
    onRejected: (run_id, error) => logFor(run_id).error(`the store does not take its start: ${errorOf(error).message}`),
  });
  const sessionsOf = (from: Store): Sessions => new Sessions(from, fetchResource, publicUrl, logFor);
  const executions: ExecutionServices = {
    registry,
    sessions: sessionsOf(storeForAgents(options.store, limits.storeTimeout, () => !active.stopped)),
    toEvents: createToEvents(now),
    onTokens: (owner, tokens) => void events.emit('tokens', owner, tokens),
    onDiverged: (run_id, reason) => void active.park(run_id, reason),
    limits,
    dispatcher,
    now,
    logFor,
    capturesContent: options.capturesContent ?? false,
    outside: AsyncLocalStorage.snapshot(),
    traces: options.traces,
  };
  const sessions = sessionsOf(store);
  const retention = new Retention(store, registry, limits, options.runTtlByOwner ?? {});
  const idempotency = new Idempotency(store, limits.idempotencyTtl, () => retention.keptAtLeast());
  const runServices: RunServices = {
    store,
    sessions,
    commits,
    dispatcher,
    executions,
    active,
    lookup,
    offers,
    queue,
    idempotency,
    retention,
    webhooks,
    events,
    counts,
  };
  connect(runServices, changes);
  const cancel = (run_id: string): void => void cancelOwed(runServices, run_id);
  const readers = new ConnectedReaders(
    new ReaderNodes(store, limits.lease, dispatcher.shared ? undefined : 'here'),
    cancel,
  );
  return { ...runServices, changes, readers, followed };
}

/** Tells each part what it has to hear of the others. */
function connect({ commits, active, events, queue, webhooks }: RunServices, changes: RunChanges): void {
  commits.events.on('committed', (writes, outcomes, milliseconds) => {
    changes.onCommitted(writes, outcomes);
    webhooks.onCommitted(writes, outcomes);
    // Last: nothing depends on what listeners do.
    events.emit('commit', milliseconds / 1_000, writes.length);
  });
  active.events.on('final', (execution) => {
    queue.onRunFinal(execution.run.run_id);
    // What an execution has measured is only put together where it is read.
    if (events.listenerCount('runEnded') > 0) events.emit('runEnded', execution.ended);
  });
  active.events.on('parked', (row) => events.emit('runParked', row));
  active.events.on('endedElsewhere', ({ ended: { row, work } }) =>
    events.emit('tokens', row.owner, work?.sinceAwait ?? 0),
  );
}
