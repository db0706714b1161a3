import type { AgentSession } from '../../core/agent.ts';
import type { Limits } from '../limits.ts';
import type { Sessions } from '../sessions.ts';
import type { Abort } from './abort.ts';
import type { ContextHost } from './context.ts';
import type { Feed } from './feed.ts';
import type { Unstarted } from './lazy.ts';
import type { PendingWork } from './pending-work.ts';
import type { Recorder } from './recorder.ts';
import { createAgentSession } from './session-context.ts';
import { Steps } from './steps.ts';

/** What all executions share. */
interface Shared extends Pick<ContextHost, 'registry' | 'now' | 'logFor'> {
  readonly sessions: Sessions;
  readonly limits: Limits;
}

/** What one execution has. */
interface Owner extends Pick<ContextHost, 'ask' | 'use' | 'reorderBuffer'> {
  readonly recorder: Recorder;
  readonly abort: Abort;
  readonly pending: PendingWork;
  readonly unstarted: Unstarted;
  /** In a durable run. */
  readonly feed: Feed | undefined;
  readonly fail: (error: unknown) => void;
}

/**
 * Makes what the contexts of an execution need. Only contexts hold it, so that a waiting run does not retain what its
 * agent has dropped. The execution holds the steps as well, because it has to close them.
 */
export function createHost(
  { limits, registry, sessions, now, logFor }: Shared,
  { recorder, abort, pending, unstarted, feed, fail, ask, use, reorderBuffer }: Owner,
): ContextHost {
  const { log, run } = recorder;
  const ready = (): Promise<void> | undefined => {
    if (limits.backlog > 0 && log.backlog > limits.backlog) return log.flushed();
    if (feed === undefined) return undefined;
    return limits.backlog > 0 && feed.backlog > limits.backlog ? feed.whenDelivered() : feed.dueDelivery;
  };
  const source = { ready, pending: (work: Promise<unknown>) => pending.track(work) };
  const steps = feed === undefined ? undefined : new Steps(recorder, feed, source, fail);
  let session: AgentSession | undefined;
  return {
    run_id: run.run_id,
    registry,
    logFor,
    source,
    steps,
    reorderBuffer,
    unstarted,
    awaitTimeout: limits.awaitTimeout,
    now,
    session: () => {
      session ??= createAgentSession(sessions, recorder, abort, steps);
      return session;
    },
    ask,
    use,
  };
}
