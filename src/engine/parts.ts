import { AsyncLocalStorage } from 'node:async_hooks';
import type { AgentLog } from '../core/agent.ts';
import type { Dispatcher } from '../core/dispatcher.ts';
import { errorOf } from '../core/errors.ts';
import type { Outcome, Store, Write } from '../core/store.ts';
import { createToEvents } from '../core/to-events.ts';
import type { Traces } from '../core/traces.ts';
import { EngineCounts } from './counts.ts';
import type { Limits, RunTtlByOwner } from './limits.ts';
import { GroupCommit } from './log/group-commit.ts';
import { Observers } from './observers.ts';
import type { Registry } from './registry.ts';
import { ActiveRuns } from './runs/active-runs.ts';
import { cancelRun } from './runs/cancel.ts';
import { keptAtLeast } from './runs/early-retention.ts';
import type { Executor } from './runs/executor.ts';
import { Idempotency } from './runs/idempotency.ts';
import type { RunServices } from './runs/run-services.ts';
import { SessionQueue } from './runs/session-queue.ts';
import { type FetchResource, Sessions } from './sessions.ts';
import { type CommitObserver, createCommitOne, storeForAgents } from './store-access.ts';
import { withDeliveries } from './webhooks/deliveries.ts';
import type { WebhookOptions } from './webhooks/webhooks.ts';
import { wireClock } from './wire-clock.ts';

export interface EngineOptions {
  readonly registry: Registry;
  readonly store: Store;
  readonly dispatcher: Dispatcher;
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

/** What the parts call, and what is made after them. */
interface Later {
  readonly executor: () => Executor;
  readonly onCommitted: (writes: readonly Write[], outcomes: readonly Outcome[]) => void;
  readonly checkWebhook: (url: string, field: string) => void;
}

/** Makes the parts of an engine that need each other. */
export function servicesOf(
  options: EngineOptions,
  store: Store,
  limits: Limits,
  { executor, onCommitted, checkWebhook }: Later,
): RunServices {
  const { registry, dispatcher, fetchResource, publicUrl, logFor, onFailure } = options;
  const now = wireClock(options.clock ?? (() => Date.now()));
  const agentStore = storeForAgents(options.store, limits.storeTimeout, () => !active.stopped);
  const sessions = new Sessions(agentStore, fetchResource, publicUrl, logFor);
  const observers = new Observers();
  const counts = new EngineCounts((name) => registry.find(name) !== undefined);
  const reporting = withDeliveries(options.store, now, options.webhooks?.forms);
  const observer: CommitObserver = {
    onCommitted(writes, outcomes, milliseconds) {
      counts.onCommitted(writes, outcomes);
      if (observers.any) observers.onCommit(milliseconds / 1_000, writes.length);
      onCommitted(writes, outcomes);
    },
    onCommitFailed() {
      counts.storeErrors += 1;
    },
  };
  const commits = new GroupCommit(reporting, {
    interval: limits.commitInterval ?? (dispatcher.shared ? 15 : 0),
    requestTimeout: limits.requestTimeout,
    storeTimeout: limits.storeTimeout,
    onFailure,
    observer,
  });
  const commitOne = createCommitOne(reporting, limits.requestTimeout, observer);
  const queue = new SessionQueue(store, {
    commitOne,
    limit: limits.queued,
    offer: (run_id) => executor().offer(run_id),
    stopping: () => active.stopping,
    onRejected: (run_id, error) => logFor(run_id).error(`the store does not take its start: ${errorOf(error).message}`),
  });
  const active: ActiveRuns = new ActiveRuns(store, commits, {
    limits,
    shared: dispatcher.shared,
    onFinal: (execution) => {
      queue.onRunFinal(execution.run.run_id);
      if (observers.any) observers.onRunEnded(execution.ended);
    },
    onRemoved: ({ run, log, parts }) => {
      const known = counts.of(run.agent_name);
      known.parts += parts;
      if (log.outcome === 'fenced') known.fenced += 1;
    },
    onParked: (row) => observers.onRunParked(row),
    onFailed: (log) => executor().onFailed(log),
    onEndedElsewhere: ({ ended: { row, work } }) => observers.onTokens(row.owner, work?.sinceAwait ?? 0),
  });
  const services: RunServices = {
    store,
    commits,
    commitOne,
    dispatcher,
    executions: {
      registry,
      sessions,
      toEvents: createToEvents(now),
      onTokens: (owner, tokens) => observers.onTokens(owner, tokens),
      onDiverged: (run_id, reason) => void active.park(run_id, reason),
      limits,
      now,
      logFor,
      capturesContent: options.capturesContent ?? false,
      outside: AsyncLocalStorage.snapshot(),
      traces: options.traces,
    },
    active,
    queue,
    observers,
    counts,
    checkWebhook,
    idempotency: new Idempotency(store, limits.idempotencyTtl, () =>
      keptAtLeast(registry, limits, options.runTtlByOwner ?? {}),
    ),
    offer: (run_id) => executor().offer(run_id),
    cancel: (run_id) => cancelRun(services, run_id),
  };
  return services;
}
