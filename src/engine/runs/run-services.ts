import type { EventEmitter } from 'eventemitter3';
import type { Store } from '../../core/ports/store.ts';
import type { Dispatcher } from '../dispatch/dispatcher.ts';
import type { EngineEvents } from '../engine-events.ts';
import type { ExecutionServices } from '../execution/execution-services.ts';
import type { GroupCommits } from '../log/group-commits.ts';
import type { Sessions } from '../sessions.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import type { ActiveRuns } from './active-runs.ts';
import type { EngineCounts } from './counts.ts';
import type { Idempotency } from './idempotency.ts';
import type { Offers } from './offers.ts';
import type { Retention } from './retention.ts';
import type { RunLookup } from './run-lookup.ts';
import type { SessionQueue } from './session-queue.ts';

/** The parts of the engine that operations on runs use. */
export interface RunServices {
  /** For requests: a call that takes too long fails. That of `executions` is for agents. */
  readonly store: Store;
  readonly sessions: Sessions;
  readonly commits: GroupCommits;
  readonly dispatcher: Dispatcher;
  readonly executions: ExecutionServices;
  readonly active: ActiveRuns;
  readonly lookup: RunLookup;
  readonly offers: Offers;
  readonly queue: SessionQueue;
  readonly idempotency: Idempotency;
  readonly retention: Retention;
  readonly webhooks: Webhooks;
  readonly events: EventEmitter<EngineEvents>;
  readonly counts: EngineCounts;
}
