import type { Dispatcher } from '../../core/dispatcher.ts';
import type { Store } from '../../core/store.ts';
import type { EngineCounts } from '../counts.ts';
import type { ExecutionServices } from '../execution/host.ts';
import type { GroupCommit } from '../log/group-commit.ts';
import type { Observers } from '../observers.ts';
import type { CommitOne } from '../store-access.ts';
import type { ActiveRuns } from './active-runs.ts';
import type { Idempotency } from './idempotency.ts';
import type { SessionQueue } from './session-queue.ts';

/** The parts of the engine that create, resume, cancel and execute runs. */
export interface RunServices {
  readonly store: Store;
  readonly commits: GroupCommit;
  readonly commitOne: CommitOne;
  readonly dispatcher: Dispatcher;
  readonly executions: ExecutionServices;
  readonly active: ActiveRuns;
  readonly queue: SessionQueue;
  readonly observers: Observers;
  readonly counts: EngineCounts;
  readonly idempotency: Idempotency;
  /** Offers a run to the dispatcher; see `Executor.offer`. */
  readonly offer: (run_id: string) => void;
  /** @throws RivuletError `webhooks_off`, `validation_failed` */
  readonly checkWebhook: (url: string, field: string) => void;
  /** Cancels a run of any process; see `cancelRun`. */
  readonly cancel: (run_id: string) => Promise<string>;
}
