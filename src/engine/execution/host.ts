import { type AgentLog, EndOfWork } from '../../core/agent.ts';
import type { Traces } from '../../core/ports/traces.ts';
import type { Principal } from '../../core/principal.ts';
import type { ToEvents } from '../../core/to-events.ts';
import type { RunUsage } from '../../schema/run.ts';
import type { Registry } from '../agents/registry.ts';
import type { Limits } from '../limits.ts';
import type { Sessions } from '../sessions.ts';
import type { ContextHost } from './context.ts';
import { Diagnostics } from './diagnostics.ts';
import type { Feed } from './feed.ts';
import type { Unstarted } from './lazy.ts';
import type { PendingWork } from './pending-work.ts';
import type { Recorder } from './recorder.ts';
import type { RunSignal } from './run-signal.ts';
import { createAgentSession } from './session-context.ts';
import { Steps } from './steps.ts';

/** The parts of an engine that all of its executions share. */
export interface ExecutionServices {
  readonly registry: Registry;
  readonly sessions: Sessions;
  readonly toEvents: ToEvents;
  /** A run has used tokens, and awaits. */
  readonly onTokens: (owner: string | null, tokens: number) => void;
  /** The agent of a re-entered run does not repeat the recording: parks the run, and releases the execution at once. */
  readonly onDiverged: (run_id: string, reason: string) => void;
  readonly limits: Limits;
  readonly now: () => string;
  /** Whether the messages and tools of model calls are kept, and lines of `context.log`. */
  readonly capturesContent: boolean;
  /** A logger that adds the run's id. */
  readonly logFor: (run_id: string) => AgentLog;
  /**
   * Runs work in the async context of the engine: `AsyncLocalStorage.snapshot()`, taken once. Agents start there,
   * because the code that starts a run often belongs to the request of another client, or to the end of another run.
   */
  readonly outside: <T>(work: () => T) => T;
  /** Undefined without an OpenTelemetry SDK. */
  readonly traces: Traces | undefined;
}

/** What one execution has. */
interface Owner extends Pick<ContextHost, 'ask' | 'record' | 'request' | 'reorderBuffer' | 'mayCleanUp'> {
  readonly recorder: Recorder;
  readonly runSignal: RunSignal;
  readonly pending: PendingWork;
  readonly unstarted: Unstarted;
  /** In a durable run. */
  readonly feed: Feed | undefined;
  readonly fail: (error: unknown) => void;
  readonly use: (used: RunUsage) => void;
}

/** What the agent of a run waits for, once the run has left. A shared promise would retain all that waits for it. */
const never = (): Promise<never> => new Promise(() => undefined);

/**
 * Makes what the contexts of an execution need. Only contexts hold it, so that a waiting run does not retain what its
 * agent has dropped. The execution holds the steps as well, because it has to close them.
 */
export function createHost(
  { limits, registry, sessions, now, logFor, capturesContent }: ExecutionServices,
  { recorder, runSignal, pending, unstarted, feed, fail, ask, use, record, ...owner }: Owner,
): ContextHost {
  const { log, run } = recorder;
  const ready = (): Promise<void> | undefined => {
    if (runSignal.left) return never();
    if (limits.backlog > 0 && log.backlog > limits.backlog) return log.flushed();
    if (feed === undefined) return undefined;
    return limits.backlog > 0 && feed.backlog > limits.backlog ? feed.whenDelivered() : feed.dueDelivery;
  };
  const source = { ready, pending: (work: Promise<unknown>) => pending.track(work) };
  const steps = feed === undefined ? undefined : new Steps(recorder, feed, source, fail);
  const committed = async (): Promise<void> => {
    // What a step has just emitted is journaled a turn later.
    const isJournaled = (await feed?.whenJournaled()) ?? true;
    // The run goes on elsewhere without what is emitted here now.
    if (runSignal.left) return never();
    if (!isJournaled) throw new EndOfWork(runSignal.closing?.reason ?? '', false);
    await log.flushed().catch((error) => (runSignal.left ? never() : Promise.reject(error)));
  };
  let principal: Principal | undefined;
  const host: ContextHost = {
    run_id: run.run_id,
    registry,
    logFor,
    diagnostics: new Diagnostics(recorder, now, capturesContent),
    source,
    steps,
    reorderBuffer: owner.reorderBuffer,
    unstarted,
    awaitTimeout: limits.awaitTimeout,
    now,
    session: (scope) => createAgentSession(sessions, { recorder, runSignal, steps, feed }, scope),
    unjournaled: once(() => ({
      ...host,
      steps: undefined,
      reorderBuffer: undefined,
      work: undefined,
      session: (scope) => createAgentSession(sessions, { recorder, runSignal, steps: undefined, feed }, scope),
      record: () => undefined,
      ask: undefined,
    })),
    principal: () => {
      // Written by this or another node: see `RunRow.principal`.
      if (log.row.principal !== null) principal ??= JSON.parse(log.row.principal);
      return principal;
    },
    request: owner.request,
    ask,
    use: (used, step) => {
      if (step !== undefined) feed?.journalUsage(step, used);
      use(used);
    },
    record,
    mayCleanUp: owner.mayCleanUp,
    work: feed?.work,
    whenWorkMayBegin: () => feed?.whenWorkMayBegin(),
    committed: () => {
      const durable = committed();
      // Where the agent does not await it, its rejection must not end the process.
      durable.catch(() => undefined);
      return durable;
    },
  };
  return host;
}

/** Returns what the first call of a function returned. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
