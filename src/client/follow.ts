import type { EventSourceMessage } from 'eventsource-parser';
import { firstValueFrom, fromEvent, takeUntil, timer } from 'rxjs';
import { isFinal, isSettled } from '../core/run-state.ts';
import type { Event } from '../schema/event.ts';
import { broken, ClientError, notUnderstood } from './client-error.ts';
import { frames } from './frames.ts';
import { type Http, pathOf } from './http.ts';
import { isEvent } from './shapes.ts';
import { Watchdog } from './watchdog.ts';

export interface Break {
  readonly error: ClientError;
  /** How many times in a row it has failed, from 1. */
  readonly attempt: number;
  /** Milliseconds until the next attempt. */
  readonly delay: number;
}

export interface Reconnect {
  /** Attempts in a row that may bring no event before the error is passed on; comments do not count. Default: any number. */
  readonly retries: number;
  /** Milliseconds at least between attempts, also where the server asks for less. Default 500. */
  readonly minDelay: number;
  /** Milliseconds that the back-off grows to, unless the server asks for more. Default 30,000. */
  readonly maxDelay: number;
  /** Milliseconds without a byte after which a stream is dead. Default 45,000: the server sends a comment every 15,000. */
  readonly idleTimeout: number;
  /** Called for each break, to show that the line is down. */
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
  /** Where to end: with the run (default), or already where it asks something. */
  readonly until?: 'settled' | 'final';
  /** Ends it with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** What is followed: a run that there is, after an event's id, or one that a POST begins. */
export type Source = { readonly run_id: string; readonly after: number } | { readonly begin: Begin };

export interface Begin {
  readonly body: object;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** No server can make us wait for longer; timers could not, either. */
const longest = 3_600_000;

/** A reader of one run that comes back after each break, with its cursor. */
export class Follower {
  readonly #http: Http;
  readonly #reconnect: Reconnect;
  readonly #until: 'settled' | 'final';
  readonly #begin: Begin | undefined;
  #run_id: string | undefined;
  #last = 0;
  #over = false;
  #failures = 0;
  /** What the server asked for, in milliseconds. */
  #retry: number | undefined;

  constructor(http: Http, source: Source, reconnect: Reconnect, until: 'settled' | 'final' = 'final') {
    this.#http = http;
    this.#reconnect = reconnect;
    this.#until = until;
    if ('begin' in source) {
      this.#begin = source.begin;
    } else {
      this.#run_id = source.run_id;
      this.#last = source.after;
    }
  }

  /** Every event once, in order, over as many connections as it takes. Throws what is of no use to try again. */
  async *events(signal: AbortSignal): AsyncGenerator<Event, void, undefined> {
    while (!this.#over) {
      signal.throwIfAborted();
      try {
        yield* this.#connection(signal);
      } catch (error) {
        if (signal.aborted || !(error instanceof ClientError) || !error.retryable) throw error;
        this.#failures += 1;
        if (this.#failures > this.#reconnect.retries) throw error;
        const delay = this.#delay(error);
        this.#reconnect.onBreak({ error, attempt: this.#failures, delay });
        await firstValueFrom(timer(delay).pipe(takeUntil(fromEvent(signal, 'abort'))), { defaultValue: 0 });
      }
    }
  }

  // Ends, and does not throw, only where the stream has told all that it ever will.
  async *#connection(signal: AbortSignal): AsyncGenerator<Event, void, undefined> {
    const watchdog = new Watchdog(signal, this.#reconnect.idleTimeout);
    const posted = this.#run_id === undefined;
    const response = await this.#request(watchdog.signal);
    if (response.status === 204) {
      this.#over = true;
      return;
    }
    const onRetry = (retry: number): void => {
      this.#retry = retry;
    };
    for await (const together of frames(response, watchdog, onRetry)) {
      for (const frame of together) {
        const event = this.#accept(frame);
        if (event === undefined) continue;
        yield event;
        // A stream that was POSTed ends at an await; a GET goes on to the answer and what follows.
        if (this.#over || (posted && event.type === 'run.awaiting')) return;
      }
    }
    throw broken('interrupted', 'The stream ended before its run.');
  }

  // The first event names the run. Until it has come the POST is repeated, under the same Idempotency-Key, which
  // makes one run however often it is sent; so it does not matter whether a break came before or after the answer.
  async #request(signal: AbortSignal): Promise<Response> {
    const accept = { Accept: 'text/event-stream' };
    if (this.#run_id === undefined && this.#begin !== undefined) {
      const { body, headers } = this.#begin;
      return this.#http.send('POST', 'runs', { body, headers: { ...accept, ...headers }, signal });
    }
    const headers = { ...accept, 'Last-Event-ID': String(this.#last) };
    return this.#http.send('GET', `${pathOf('runs', this.#run_id ?? '')}/events`, { headers, signal });
  }

  /** The event of a frame, or undefined where it was seen before. */
  #accept({ id, data }: EventSourceMessage): Event | undefined {
    const event = parse(data);
    if (id === undefined) {
      // The server's last word about a stream that it cannot go on with.
      if (event.type === 'error') throw new ClientError({ ...event.error, status: 0 });
      throw notUnderstood('The events of the stream have no ids.');
    }
    if (!plainDecimal.test(id)) throw notUnderstood(`This is not the id of an event: ${id.slice(0, 100)}`);
    const number = Number(id);
    if (number <= this.#last) return undefined;
    if (number !== this.#last + 1) {
      throw broken('interrupted', `Event ${id} came after event ${this.#last}.`);
    }
    this.#last = number;
    this.#failures = 0;
    if ('run' in event) {
      this.#run_id = event.run.run_id;
      this.#over = (this.#until === 'settled' ? isSettled : isFinal)(event.run.status);
    }
    return event;
  }

  // Never sooner than the server asks; and not all at once, when it comes back to many who wait.
  #delay({ retryAfter = 0 }: ClientError): number {
    const { minDelay, maxDelay } = this.#reconnect;
    const backOff = Math.min((this.#retry || 1_000) * 2 ** (this.#failures - 1), maxDelay);
    const delay = Math.max(minDelay, this.#retry ?? 0, retryAfter, backOff);
    return Math.min(delay * (1 + Math.random() / 2), longest);
  }
}

/** As the server writes ids; Number() would also take `0x10`, `1e3` and nothing at all. */
const plainDecimal = /^[1-9]\d*$/;

function parse(data: string): Event {
  try {
    const event = JSON.parse(data);
    if (isEvent(event)) return event;
  } catch {}
  throw notUnderstood(`This is not an event: ${data.slice(0, 100)}`);
}
