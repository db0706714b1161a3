import { concatMap, defer, firstValueFrom, type Observable, type ObservableInput } from 'rxjs';
import type { AgentSession } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import type { History, HistoryMark, Sessions } from '../sessions.ts';
import type { Abort } from './abort.ts';
import type { Recorder } from './recorder.ts';
import type { Journaled, Steps } from './steps.ts';
import { ignored, reported } from './unhandled.ts';

/**
 * The session as a run's agent sees it. In a durable run each look at it is a step: another run may have
 * changed the session before this one is re-entered, and the agent has to see what it saw.
 */
export function createAgentSession(
  sessions: Sessions,
  recorder: Recorder,
  abort: Abort,
  steps: Steps | undefined,
): AgentSession {
  const { log } = recorder;
  const { session_id, run_id } = log.row;
  const place = { session_id, run_id };
  const step = <T>(name: string, work: () => ObservableInput<T>, journaled?: Journaled<T>): Observable<T> =>
    defer(() => {
      if (abort.reason !== undefined) throw reported(fail('run_not_open', `session.${name}`, abort.reason), ignored);
      return steps === undefined ? defer(work) : steps.step(`session.${name}`, { work, journaled });
    });
  // The messages are kept in the store: the journal has how many they were, and the last one's URL.
  const journaled: Journaled<History> = {
    save: ({ mark }) => mark,
    // As `save` left it in the journal.
    load: (mark) => sessions.historyAt(place, mark as HistoryMark, abort.signal),
  };
  return {
    id: session_id,
    history:
      steps === undefined
        ? step('history', () => sessions.history(place, abort.signal))
        : step('history', () => sessions.historyAt(place, undefined, abort.signal), journaled).pipe(
            concatMap(({ messages }) => messages),
          ),
    // The caller knows what it stored; that is what the type parameter is for.
    state: <T>() =>
      withHandledRejection(
        step('state', async () => (await sessions.state(session_id, abort.signal)) as T | undefined),
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

/** The one value. Where the agent does not wait for it, a failure must not end the process. */
function withHandledRejection<T>(value: Observable<T>): Promise<T> {
  const promise = firstValueFrom(value);
  promise.catch(() => undefined);
  return promise;
}
