import { firstValueFrom, fromEvent, fromEventPattern, merge, takeUntil, timer } from 'rxjs';
import { isFinal, isSettled } from '../core/run-state.ts';
import { backoff, spread } from '../core/timing.ts';
import type { RunsQuery } from '../schema/api.ts';
import type { Event } from '../schema/event.ts';
import type { RunSummary } from '../schema/run.ts';
import { broken, ClientError, isLost, runFailure } from './client-error.ts';
import { onWake } from './wake.ts';

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
  /**
   * As `retries`, before the server has answered for the first time. Default 0: a dead address is reported at once. `run` and
   * `sync` make one more attempt, because their POST may have arrived. A refusal with `Retry-After`, such as the refusal of a
   * busy server, does not count.
   */
  readonly firstRetries: number;
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
  firstRetries: 0,
  minDelay: 500,
  maxDelay: 30_000,
  idleTimeout: 45_000,
  onBreak: () => {},
};

export interface FollowOptions {
  /** Complete when the run is final (default), or already when it is settled (final or awaiting). */
  readonly until?: 'settled' | 'final';
  /** What a loop does after the event `run.failed`: throw the error of the run (default), or end. */
  readonly onFailed?: 'throw' | 'end';
  /** Ends the stream with the signal's reason as its error. */
  readonly signal?: AbortSignal;
}

/** Which runs to watch; `limit` is the number of runs at the beginning, 20 by default. */
export type RunsFilter = Omit<RunsQuery, 'cursor'>;

/** The run to follow: an existing one, after the event with a number, or one that a POST creates. */
export type FollowedRun = { readonly run_id: string; readonly after: number } | { readonly begin: Begin };
/** A feed of runs, after a position; 0 for its beginning. */
export interface FollowedFeed {
  readonly filter: RunsFilter;
  readonly after: number;
}
export type Followed = FollowedRun | FollowedFeed;

/** The state of a run; or the reader is up to date; or it has missed changes, and the newest runs follow. */
export type FeedEvent = { readonly type: 'run'; readonly run: RunSummary } | { readonly type: 'ready' | 'reset' };

export interface Begin {
  readonly body: object;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** An event and its id: the nth event of a run has the id n. In a feed, it is the position of the reader, or 0. */
export interface Numbered {
  readonly id: number;
  readonly event: Event | FeedEvent;
}

/**
 * Reads a source's events once, as many at a time as came together: over a connection, or from the engine of this process.
 * Ends where a run is final and has no event after the source's cursor; throws where the events broke off before
 * that. `onRetry` is given the milliseconds that the server asks for between attempts.
 */
export type Connect = (
  source: Followed,
  signal: AbortSignal,
  onRetry: (retry: number) => void,
) => AsyncIterable<Iterable<Numbered>>;

/** No server can make us wait for longer; timers could not, either. */
const longest = 3_600_000;

/**
 * Yields every event once, in order, over as many connections as it takes. Throws an error that another attempt would
 * only repeat, and in a loop the error of a failed run.
 */
export async function* eventsOf(
  connect: Connect,
  { retries, firstRetries, minDelay, maxDelay, onBreak }: Reconnect,
  source: Followed,
  { until, onFailed, signal: outer }: FollowOptions,
  left: AbortSignal,
  isLoop: boolean,
): AsyncGenerator<Event | FeedEvent, void, undefined> {
  const signal = outer ? AbortSignal.any([left, outer]) : left;
  const isFeed = 'filter' in source;
  const isEnd = until === 'settled' ? isSettled : isFinal;
  /** Empty for a feed, and until the run has begun. */
  let run_id = 'run_id' in source ? source.run_id : '';
  let last = 'begin' in source ? 0 : source.after;
  let failures = 0;
  let limit = Math.min(firstRetries, retries);
  /** What the server asked for, in milliseconds. */
  let retry = 0;
  const onRetry = (milliseconds: number): void => {
    retry = milliseconds;
    limit = retries;
  };
  attempts: for (;;) {
    signal.throwIfAborted();
    const begins = !run_id;
    const from: Followed = begins ? { ...source, after: last } : { run_id, after: last };
    try {
      for await (const together of connect(from, signal, onRetry)) {
        for (const { id, event } of together) {
          if (!isFeed) {
            if (id <= last) continue;
            if (id !== last + 1) throw broken('interrupted', `Event ${id} came after event ${last}.`);
          } else if (failures && !last) {
            // After a break, the feed begins with the newest runs. Older states that it has yielded may be out of date.
            yield { type: 'reset' };
          }
          // If the connection breaks before the next position, the feed begins with the newest runs.
          last = event.type === 'reset' ? 0 : id || last;
          failures = 0;
          limit = retries;
          const run = !isFeed && 'run' in event && event.run;
          if (run) run_id = run.run_id;
          yield event;
          if (run && isLoop && onFailed !== 'end' && event.type === 'run.failed') throw runFailure(run);
          if (run && isEnd(run.status)) return;
          // The stream of the POST ends when the run awaits. A stream that follows the run continues after the reply.
          if (begins && event.type === 'run.awaiting') continue attempts;
        }
      }
      return;
    } catch (error) {
      if (signal.aborted || !(error instanceof ClientError) || !error.retryable) throw error;
      failures += 1;
      const { retryAfter } = error;
      // The key of a POST makes one run of both.
      if (begins && !isFeed && isLost(error)) limit ||= Math.min(1, retries);
      if (failures > (retryAfter === undefined ? limit : retries)) throw error;
      const backOff = backoff(failures, retry || 1_000, maxDelay);
      // Never sooner than the server asks.
      const wait = spread(Math.max(minDelay, retry, retryAfter ?? 0, backOff));
      const delay = Math.min(wait, longest);
      onBreak({ error, attempt: failures, delay });
      const sooner = merge(
        fromEvent(signal, 'abort'),
        fromEventPattern(onWake, (_, unsubscribe) => unsubscribe()),
      );
      await firstValueFrom(timer(delay).pipe(takeUntil(sooner)), { defaultValue: 0 });
    }
  }
}
