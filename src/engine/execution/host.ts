import type { Observable } from 'rxjs';
import { EndOfWork } from '../../core/agent.ts';
import type { Principal } from '../../core/principal.ts';
import type { AgentRequest } from '../../core/request.ts';
import type { GenericEvent } from '../../schema/event.ts';
import type { AwaitRequest, AwaitResume, RunUsage } from '../../schema/run.ts';
import { Diagnostics } from './diagnostics.ts';
import type { ExecutionServices } from './execution-services.ts';
import type { Feed } from './feed.ts';
import type { SourceHooks } from './from-agent.ts';
import type { Unstarted } from './lazy.ts';
import type { PendingWork } from './pending-work.ts';
import type { Recorder } from './recorder.ts';
import type { ReorderBuffer } from './reorder-buffer.ts';
import type { RunSignal } from './run-signal.ts';
import type { Scope } from './scope.ts';
import { createAgentSession } from './session-context.ts';
import { Steps } from './steps.ts';

/** What one execution has. */
interface ExecutionParts {
  readonly recorder: Recorder;
  readonly runSignal: RunSignal;
  readonly pending: PendingWork;
  readonly unstarted: Unstarted;
  /** In a durable run. */
  readonly feed: Feed | undefined;
  /** Tells the branches of calls apart during a replay. */
  readonly reorderBuffer: ReorderBuffer | undefined;
  readonly request: AgentRequest;
  readonly fail: (error: unknown) => void;
  readonly ask: (request: AwaitRequest) => Observable<AwaitResume>;
  /** Records an event of the run beside the agent's output. `inWork`: the event comes from the work of a step. */
  readonly record: (event: GenericEvent, inWork: boolean) => void;
  readonly use: (used: RunUsage) => void;
}

/** What the agent of a run waits for, once the run has left. A shared promise would retain all that waits for it. */
const never = (): Promise<never> => new Promise(() => undefined);

export type AgentHost = ReturnType<typeof createHost>;

/**
 * Makes what the contexts of an execution need. Only contexts hold it, so that a waiting run does not retain what its
 * agent has dropped. The execution holds the steps as well, because it has to close them.
 */
export function createHost(
  { limits, registry, sessions, now, logFor, capturesContent }: ExecutionServices,
  { recorder, runSignal, pending, unstarted, feed, fail, ask, use, record, ...parts }: ExecutionParts,
) {
  const { log, run } = recorder;
  const ready = (): Promise<void> | undefined => {
    if (runSignal.left) return never();
    if (limits.backlog > 0 && log.backlog > limits.backlog) return log.flushed();
    if (feed === undefined) return undefined;
    return limits.backlog > 0 && feed.backlog > limits.backlog ? feed.whenDelivered() : feed.dueDelivery;
  };
  const source: SourceHooks = { ready, pending: (work) => pending.track(work) };
  const whenHeld = (): Promise<void> => feed?.hold.whenHeld() ?? log.flushed();
  const committed = async (own: RunSignal): Promise<void> => {
    const { closing } = own;
    // What a step has just emitted is journaled a turn later.
    const isJournaled = (await feed?.whenJournaled()) ?? true;
    if (isJournaled) await whenHeld();
    // The agent of a run that was cancelled meanwhile cleans up when the cancel is durable.
    if (own.closing === undefined && log.row.status === 'cancelling') await whenHeld();
    // The run goes on elsewhere, and there its agent may do what follows.
    if (runSignal.left) return never();
    // The run was cancelled meanwhile, or is over, and what follows must not begin.
    if (!isJournaled || own.closing !== closing) throw new EndOfWork(own.closing?.reason ?? '', false);
  };
  let principal: Principal | undefined;
  return {
    run_id: run.run_id,
    registry,
    logFor,
    diagnostics: new Diagnostics(recorder, now, capturesContent),
    source,
    /** In a durable run. */
    steps: feed && new Steps(recorder, feed, source, fail),
    /** In a durable run. */
    work: feed?.work,
    unstarted,
    /** Milliseconds until an await without a reply ends the run; zero for never. */
    awaitTimeout: limits.awaitTimeout,
    now,
    /** The session as the agent of a scope sees it. */
    session: (scope: Scope, steps: Steps | undefined) =>
      createAgentSession(sessions, { recorder, runSignal, steps, feed }, scope),
    /** Returns the same object each time. */
    principal: (): Principal | undefined => {
      // Written by this or another node: see `RunRow.principal`.
      if (log.row.principal !== null) principal ??= JSON.parse(log.row.principal);
      return principal;
    },
    /** Journals that work begins which must not be repeated. Undefined where steps keep that, or nothing does. */
    journalBegun: undefined as (() => void) | undefined,
    /** Undefined where the agent may not ask: see `unjournaled`. */
    ask: ask as ExecutionParts['ask'] | undefined,
    /** `step`: whose work has used it. */
    use: (used: RunUsage, step: string | undefined): void => {
      if (step !== undefined) feed?.journalUsage(step, used);
      use(used);
    },
    record,
    request: parts.request,
    reorderBuffer: parts.reorderBuffer,
    /** Whether the run is cancelled, and its agent may still clean up in steps. */
    cleansUp: (): boolean => runSignal.closing?.as === 'cancelled',
    /** See `Feed.whenWorkMayBegin`. */
    whenWorkMayBegin: () => feed?.whenWorkMayBegin(),
    /** `own`: of the run, or of the call whose agent waits. */
    committed: (own: RunSignal): Promise<void> => {
      const durable = committed(own);
      // Where the agent does not await it, its rejection must not end the process.
      durable.catch(() => undefined);
      return durable;
    },
  };
}

/**
 * The host of an agent that is not durable and whose answer is awaited: only that answer is journaled, and that the agent is
 * about to do what must not be repeated.
 */
export const unjournaled = (host: AgentHost, journalBegun: () => void): AgentHost => ({
  ...host,
  journalBegun,
  steps: undefined,
  reorderBuffer: undefined,
  work: undefined,
  record: () => undefined,
  ask: undefined,
});
