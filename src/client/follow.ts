import { firstValueFrom, fromEvent, takeUntil, timer } from 'rxjs';
import { isFinal, isSettled } from '../core/run-state.ts';
import type { Event } from '../schema/event.ts';
import type { RunStatus } from '../schema/run.ts';
import { broken, ClientError } from './client-error.ts';
import { Events } from './events.ts';

export interface Break {
  readonly error: ClientError;
  /** The number of consecutive failures, from 1. */
  readonly attempt: number;
  /** Milliseconds until the next attempt. */
  readonly delay: number;
}

export interface Reconnect {
  /** Consecutive attempts without an event before the stream fails; comments do not count. Default: unlimited. */
  readonly retries: number;
  /** Minimum milliseconds between attempts, even if the server asks for less. Default 500. */
  readonly minDelay: number;
  /** Maximum milliseconds of the back-off, unless the server asks for more. Default 30,000. */
  readonly maxDelay: number;
  /** Milliseconds without a byte before the client reconnects. Default 45,000; the server sends a comment every 15,000. */
  readonly idleTimeout: number;
  /** Called for each lost connection, for example to show it to the user. */
  readonly onBreak: (info: Break) => void;
}

export const defaultReconnect: Reconnect = {
  retries: Number.POSITIVE_INFINITY,
  minDelay: 500,
  maxDelay: 30_000,
  idleTimeout: 45_000,
  onBreak: () => {},
};

export interface FollowOptions {
  /** Complete when the run is final (default), or already when it is settled (final or awaiting). */
  readonly until?: 'settled' | 'final';
  /** Ends the stream with the signal's reason as its error. */
  readonly signal?: AbortSignal;
}

/** The run to follow: an existing one, after the event with a number, or one that a POST creates. */
export type Source = { readonly run_id: string; readonly after: number } | { readonly begin: Begin };

export interface Begin {
  readonly body: object;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** An event and its id: the nth event of a run has the id n. */
export interface Numbered {
  readonly id: number;
  readonly event: Event;
}

/**
 * Reads a run's events once, as many at a time as came together: over a connection, or from the engine of this process.
 * Ends where the run is final and has no event after the source's cursor; throws where the events broke off before
 * that. `onRetry` is given the milliseconds that the server asks for between attempts.
 */
export type Connect = (
  source: Source,
  signal: AbortSignal,
  onRetry: (retry: number) => void,
) => AsyncIterable<Iterable<Numbered>>;

/** No server can make us wait for longer; timers could not, either. */
const longest = 3_600_000;

/** A run's events. Each subscription asks `source` for its own source, and has a cursor of its own. */
export const follow = (
  connect: Connect,
  reconnect: Reconnect,
  source: () => Source,
  { until, signal }: FollowOptions,
): Events =>
  new Events((left) => {
    const either = signal === undefined ? left : AbortSignal.any([left, signal]);
    return eventsOf(connect, reconnect, source(), until === 'settled' ? isSettled : isFinal, either);
  });

/**
 * Yields every event once, in order, over as many connections as it takes. Throws an error that another attempt would
 * only repeat.
 */
export async function* eventsOf(
  connect: Connect,
  reconnect: Reconnect,
  source: Source,
  isEnd: (status: RunStatus) => boolean,
  signal: AbortSignal,
): AsyncGenerator<Event, void, undefined> {
  let [run_id, last] = 'begin' in source ? [undefined, 0] : [source.run_id, source.after];
  let failures = 0;
  /** What the server asked for, in milliseconds. */
  let retry: number | undefined;
  const onRetry = (milliseconds: number): void => {
    retry = milliseconds;
  };
  attempts: for (;;) {
    signal.throwIfAborted();
    const begins = run_id === undefined;
    try {
      for await (const together of connect(run_id === undefined ? source : { run_id, after: last }, signal, onRetry)) {
        for (const { id, event } of together) {
          if (id <= last) continue;
          if (id !== last + 1) throw broken('interrupted', `Event ${id} came after event ${last}.`);
          last = id;
          failures = 0;
          if ('run' in event) run_id = event.run.run_id;
          yield event;
          if ('run' in event && isEnd(event.run.status)) return;
          // The stream of the POST ends when the run awaits. A stream that follows the run continues after the reply.
          if (begins && event.type === 'run.awaiting') continue attempts;
        }
      }
      return;
    } catch (error) {
      if (signal.aborted || !(error instanceof ClientError) || !error.retryable) throw error;
      failures += 1;
      if (failures > reconnect.retries) throw error;
      const delay = delayOf(reconnect, failures, retry, error);
      reconnect.onBreak({ error, attempt: failures, delay });
      await firstValueFrom(timer(delay).pipe(takeUntil(fromEvent(signal, 'abort'))), { defaultValue: 0 });
    }
  }
}

// Never sooner than the server asks. The random part spreads the clients that wait for the same server.
function delayOf(
  { minDelay, maxDelay }: Reconnect,
  failures: number,
  retry = 0,
  { retryAfter = 0 }: ClientError,
): number {
  const backOff = Math.min((retry || 1_000) * 2 ** (failures - 1), maxDelay);
  const delay = Math.max(minDelay, retry, retryAfter, backOff);
  return Math.min(delay * (1 + Math.random() / 2), longest);
}
