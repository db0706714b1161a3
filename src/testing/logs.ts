import { isDeepStrictEqual } from 'node:util';
import { firstValueFrom, fromEvent, takeUntil, timer } from 'rxjs';
import { Events } from '../client/events.ts';
import { isEvent } from '../client/shapes.ts';
import type { Event } from '../schema/event.ts';

/** The events of a run, as `rivulet record` prints them and `runAgent` answers them. */
export type RecordedLog = readonly { readonly type: string }[];

declare global {
  // The assertions of vitest have the members of chai's, in each version of vitest.
  namespace Chai {
    interface Assertion {
      toMatchLog(log: RecordedLog): void;
    }
  }
  namespace jest {
    interface Matchers<R> {
      toMatchLog(log: RecordedLog): R;
    }
  }
}

/** Fields that differ from run to run. */
const varying = new Set(['run_id', 'session_id', 'created_at', 'completed_at', 'finished_at', 'expires_at']);
/** An event of kind `call`, and the step of a tool's call, say when the call began or ended. */
const timesOf: Readonly<Record<string, readonly string[]>> = { call: ['at'], trajectory: ['started_at', 'ended_at'] };
const isTimeOfCall = (object: object, key: string): boolean =>
  'kind' in object && timesOf[String(object.kind)]?.includes(key) === true;
/** Fields that the server adds to a reply, of which `received_at` tells that an object is one. */
const ofReply = new Set(['received_at', 'channel', 'principal']);

const comparable = (events: RecordedLog): unknown[] => JSON.parse(JSON.stringify(events, withoutVarying));

function withoutVarying(this: object, key: string, value: unknown): unknown {
  const isOfReply = 'received_at' in this && ofReply.has(key);
  return varying.has(key) || isTimeOfCall(this, key) || isOfReply ? undefined : value;
}

/**
 * A matcher for vitest and jest: `expect.extend({ toMatchLog })`, then `expect(events).toMatchLog(fixture)`. Ids and times
 * of runs, sessions, messages and calls are ignored, and through which channel a reply came; all else has to be the same, event
 * for event.
 */
export function toMatchLog(received: RecordedLog, fixture: RecordedLog) {
  const [actual, expected] = [comparable(received), comparable(fixture)];
  const length = Math.max(actual.length, expected.length);
  const at = Array.from({ length }).findIndex((_, index) => !isDeepStrictEqual(actual[index], expected[index]));
  const shown = (events: unknown[]): string => JSON.stringify(events[at]) ?? 'the end';
  const message = (): string =>
    at < 0
      ? 'expected a log that differs from the recorded one'
      : `event ${at + 1} differs from the recorded log: expected ${shown(expected)}, got ${shown(actual)}`;
  return { pass: at < 0, message, actual, expected };
}

/**
 * A recorded log as a run stream, for tests of a UI without an agent or a server: what `client.watch` returns.
 * `interval`: milliseconds before each event. Default 0: all at once.
 */
export const replayLog = (log: RecordedLog, { interval = 0 }: { interval?: number } = {}): Events =>
  new Events((left) => play(log, interval, left));

async function* play(log: RecordedLog, interval: number, left: AbortSignal): AsyncGenerator<Event, void, undefined> {
  for (const [index, event] of log.entries()) {
    if (!isEvent(event)) throw new Error(`event ${index + 1} of the log is malformed: ${JSON.stringify(event)}`);
    // Not `delay`: its timer would go on after the subscriber has left.
    if (interval > 0)
      await firstValueFrom(timer(interval).pipe(takeUntil(fromEvent(left, 'abort'))), { defaultValue: 0 });
    if (left.aborted) return;
    // A UI may change what it gets, and the next subscriber has to get the log as it was.
    yield structuredClone(event);
  }
}
