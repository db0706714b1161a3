import { concat, concatMap, defer, EMPTY, ignoreElements, lastValueFrom, NEVER, type Observable, of } from 'rxjs';
import type { AgentSession } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import type { Extras } from '../../core/ports/run-store.ts';
import { sessionIdOf } from '../../core/principal.ts';
import type { History, HistoryMark, Sessions } from '../sessions.ts';
import { ignored, reported } from '../unhandled.ts';
import type { Feed } from './feed.ts';
import type { Recorder } from './recorder.ts';
import type { RunSignal } from './run-signal.ts';
import type { Scope } from './scope.ts';
import type { Journaled, Steps, Work } from './steps.ts';

interface SessionHost {
  readonly recorder: Recorder;
  readonly runSignal: RunSignal;
  /** Undefined where nothing is journaled. */
  readonly steps: Steps | undefined;
  /** In a durable run. */
  readonly feed: Feed | undefined;
}

/**
 * The session as a run's agent sees it. `scope` is the agent's. In a durable run each access is a step, because another run
 * may change the session before this one is re-entered, and a replay has to return the same values.
 */
export function createAgentSession(
  sessions: Sessions,
  { recorder, runSignal, steps, feed }: SessionHost,
  scope: Scope,
): AgentSession {
  const { log } = recorder;
  const { session_id, run_id } = log.row;
  const key = { session_id, run_id };
  const step = <T>(name: string, work: Work<T>): Observable<T> =>
    defer(() => {
      const { closing, left } = runSignal;
      if (left) return NEVER;
      if (closing !== undefined)
        throw reported(fail('run_not_open', `session.${name}`, closing.reason).withoutFrames(), ignored);
      return steps === undefined ? defer(work.work) : steps.step(scope.now, `session.${name}`, work);
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
        ? step('history', { work: () => sessions.history(key, runSignal.signal) })
        : step('history', { work: () => sessions.historyAt(key, undefined, runSignal.signal), journaled }).pipe(
            concatMap(({ messages }) => messages),
          ),
    // The agent names the type of the state that it stored.
    state: <T>() =>
      settled(
        step('state', { work: async () => (await sessions.state(session_id, runSignal.signal)) as T | undefined }),
      ),
    setState: (value) => {
      let extras: Extras = {};
      const make = (): void => {
        extras = sessions.stateExtras(session_id, value);
        recorder.count(extras.resources?.[0]?.body.length ?? 0);
      };
      const store = async (): Promise<void> => {
        make();
        log.attach(extras);
        await log.flushed();
      };
      if (steps === undefined) return settled(step('setState', { work: store }));
      const stored = async (): Promise<void> => {
        await feed?.whenJournaled();
        await log.flushed();
      };
      const work = () => {
        make();
        return concat(of(undefined), defer(stored).pipe(ignoreElements()));
      };
      // The state is stored with the step's value, in one commit. A later life does not store it again, over what other runs
      // have stored meanwhile.
      return settled(step('setState', { work, again: () => EMPTY, extras: () => extras }));
    },
  };
}

/** The only value, at its end. Where the agent does not await the promise, its rejection must not end the process. */
function settled<T>(value: Observable<T>): Promise<T> {
  const promise = lastValueFrom(value);
  promise.catch(() => undefined);
  return promise;
}
