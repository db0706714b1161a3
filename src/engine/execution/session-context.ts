import { defer, firstValueFrom, type Observable, type ObservableInput } from 'rxjs';
import type { AgentSession } from '../../core/agent.ts';
import type { RunLog } from '../log/run-log.ts';
import type { Sessions } from '../sessions.ts';
import type { Abort } from './abort.ts';
import type { Steps } from './steps.ts';

/**
 * The session as a run's agent sees it. In a durable run each look at it is a step: another run may have
 * changed the session before this one is re-entered, and the agent has to see what it saw.
 */
export function sessionOf(sessions: Sessions, log: RunLog, abort: Abort, steps: Steps | undefined): AgentSession {
  const { session_id } = log.row;
  const step = <T>(name: string, work: () => ObservableInput<T>): Observable<T> =>
    steps === undefined ? defer(work) : steps.step(`session.${name}`, work);
  return {
    id: session_id,
    history: step('history', () => sessions.history(session_id, abort.signal)),
    // The caller knows what it stored; that is what the type parameter is for.
    state: <T>() =>
      firstValueFrom(step('state', async () => (await sessions.state(session_id, abort.signal)) as T | undefined)),
    setState: (value) =>
      firstValueFrom(
        step('setState', async () => {
          log.attach(sessions.storeState(session_id, value));
          await log.flushed();
        }),
      ),
  };
}
