import { concatMap, defer, firstValueFrom, NEVER, type Observable, type ObservableInput } from 'rxjs';
import type { AgentSession } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import { sessionIdOf } from '../../core/principal.ts';
import type { History, HistoryMark, Sessions } from '../sessions.ts';
import { ignored, reported } from '../unhandled.ts';
import type { Recorder } from './recorder.ts';
import type { RunSignal } from './run-signal.ts';
import type { Journaled, Steps } from './steps.ts';

/**
 * The session as a run's agent sees it. In a durable run each access is a step: another run may have changed the
 * session before this one is re-entered, and a replay has to return the same values.
 */
export function createAgentSession(
  sessions: Sessions,
  recorder: Recorder,
  runSignal: RunSignal,
  steps: Steps | undefined,
): AgentSession {
  const { log } = recorder;
  const { session_id, run_id } = log.row;
  const key = { session_id, run_id };
  const step = <T>(name: string, work: () => ObservableInput<T>, journaled?: Journaled<T>): Observable<T> =>
    defer(() => {
      const { closing, left } = runSignal;
      if (left) return NEVER;
      if (closing !== undefined)
        throw reported(fail('run_not_open', `session.${name}`, closing.reason).withoutFrames(), ignored);
      return steps === undefined ? defer(work) : steps.step(`session.${name}`, { work, journaled });
    });
  // The journal keeps no messages, which are in the store, but their number and the last one's URL.
  const journaled: Journaled<History> = {
    save: ({ mark }) => mark,
    // The value that `save` wrote to the journal.
    load: (mark) => sessions.historyAt(key, mark as HistoryMark, runSignal.signal),
  };
  return {
    id: sessionIdOf(session_id),
    history:
      steps === undefined
        ? step('history', () => sessions.history(key, runSignal.signal))
        : step('history', () => sessions.historyAt(key, undefined, runSignal.signal), journaled).pipe(
            concatMap(({ messages }) => messages),
          ),
    // The agent names the type of the state that it stored.
    state: <T>() =>
      withHandledRejection(
        step('state', async () => (await sessions.state(session_id, runSignal.signal)) as T | undefined),
      ),
    setState: (value) =>
      withHandledRejection(
        step('setState', async () => {
          const extras = sessions.stateExtras(session_id, value);
          recorder.count(extras.resources?.[0]?.body.length ?? 0);
          log.attach(extras);
          await log.flushed();
        }),
      ),
  };
}

/** The only value. Where the agent does not await the promise, its rejection must not end the process. */
function withHandledRejection<T>(value: Observable<T>): Promise<T> {
  const promise = firstValueFrom(value);
  promise.catch(() => undefined);
  return promise;
}
