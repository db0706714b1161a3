import type { AgentSession } from '../../core/agent.ts';
import type { Limits } from '../limits.ts';
import type { Sessions } from '../sessions.ts';
import type { Abort } from './abort.ts';
import type { ContextHost } from './context.ts';
import type { Pending } from './pending.ts';
import type { Recorder } from './recorder.ts';
import { sessionOf } from './session-context.ts';
import { Steps } from './steps.ts';

/** What it needs of all that executions share. */
interface Shared extends Pick<ContextHost, 'registry' | 'now' | 'logFor'> {
  readonly sessions: Sessions;
  readonly limits: Limits;
}

/**
 * What an execution's contexts are made of. Held by them only: what an agent that has been called does not keep of
 * its context is gone, however long the run waits.
 */
export function createHost(
  { limits, registry, sessions, now, logFor }: Shared,
  recorder: Recorder,
  abort: Abort,
  pending: Pending,
  { ask, use }: Pick<ContextHost, 'ask' | 'use'>,
): ContextHost {
  const { log, run } = recorder;
  const source = {
    ready: () => (log.backlog > limits.backlog ? log.flushed() : undefined),
    pending: (work: Promise<unknown>) => pending.track(work),
  };
  const steps = log.row.tier === 'durable' ? new Steps(recorder, source) : undefined;
  let session: AgentSession | undefined;
  return {
    run_id: run.run_id,
    registry,
    logFor,
    source,
    steps,
    awaitTime: limits.awaitTime,
    now,
    session: () => {
      session ??= sessionOf(sessions, log, abort, steps);
      return session;
    },
    ask,
    use,
  };
}
