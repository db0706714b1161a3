import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Counts, UnorderedSet } from '../../core/collections.ts';
import { fail, type RivuletError } from '../../core/errors.ts';
import { ownerOf } from '../../core/principal.ts';
import type { HttpLimits } from '../limits/limits.ts';
import type { StreamMode, TrafficObserver } from '../traffic.ts';

interface StreamMonitorOptions extends Pick<HttpLimits, 'heartbeat' | 'maxStreams' | 'streamsPerOwner'> {
  readonly traffic: TrafficObserver;
}

interface Stream {
  readonly reply: FastifyReply;
  /** Completes the stream; early, for a reason that its protocol may say. */
  readonly end: (reason?: RivuletError) => void;
  /** Bytes that the kernel had taken at the last check. */
  written: number;
  /** Checks since a byte was written. */
  idle: number;
  /** Whether a review has ended it. One whose client does not read stays open until it is dropped. */
  withdrawn: boolean;
}

/** Milliseconds between two checks at most: a heartbeat is late by as much. */
const checkInterval = 1_000;

/**
 * Monitors the open streams. Heartbeats (comment lines) keep an idle stream open through proxies. One timer serves all
 * streams. The timer ends at the first check that finds no stream.
 */
export class StreamMonitor {
  readonly #options: StreamMonitorOptions;
  readonly #traffic: TrafficObserver;
  /** Checks without a byte after which a stream gets a heartbeat. */
  readonly #mostIdle: number;
  readonly #interval: number;
  readonly #streams = new UnorderedSet<Stream>();
  readonly #byOwner = new Counts();
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(options: StreamMonitorOptions) {
    this.#options = options;
    this.#traffic = options.traffic;
    this.#mostIdle = Math.ceil(options.heartbeat / checkInterval);
    this.#interval = options.heartbeat / this.#mostIdle;
  }

  get size(): number {
    return this.#streams.size;
  }

  get full(): boolean {
    return this.#streams.size >= this.#options.maxStreams;
  }

  /** Whether an owner has as many open streams as it may have. */
  isFullFor(owner: string | null): boolean {
    const { streamsPerOwner } = this.#options;
    return owner !== null && streamsPerOwner > 0 && this.#byOwner.of(owner) >= streamsPerOwner;
  }

  /** @throws RivuletError `too_many_streams`, `too_many_own_streams` where a limit is reached */
  admit(owner: string | null): void {
    if (this.full) throw fail('too_many_streams', this.#options.maxStreams);
    if (!this.isFullFor(owner)) return;
    this.#traffic.onRateLimited('streams');
    throw fail('too_many_own_streams', this.#options.streamsPerOwner);
  }

  /** Starts to monitor a stream; `end` completes it. Returns a function that stops the monitoring. */
  add(reply: FastifyReply, mode: StreamMode, end: Stream['end']): () => void {
    reply.streamMode = mode;
    this.#traffic.onStream(mode);
    const { principal } = reply.request;
    const owner = principal === undefined ? null : ownerOf(principal);
    // Others may have opened since this one was admitted: its client comes back.
    const isTooMany = this.isFullFor(owner);
    const remove = this.#streams.add({ reply, end, written: 0, idle: 0, withdrawn: false });
    if (owner !== null) this.#byOwner.add(owner, 1);
    if (this.#ended || isTooMany) end();
    this.#timer ??= setInterval(() => this.#check(), this.#interval).unref();
    return () => {
      remove();
      if (owner !== null) this.#byOwner.add(owner, -1);
    };
  }

  /** Completes all streams, and those to come: the server stops, and their runs go on. */
  end(): void {
    this.#ended = true;
    for (const { end } of this.#streams.all()) {
      this.#traffic.onStreamDropped('stopping');
      end();
    }
  }

  /** Ends the streams whose requests do not pass: their credentials were withdrawn, or have expired. */
  review(holds: (request: FastifyRequest) => Promise<boolean>): void {
    for (const stream of this.#streams.all()) {
      if (stream.withdrawn) continue;
      const { request, raw } = stream.reply;
      void holds(request).then((isIn) => {
        if (isIn || raw.destroyed || raw.writableEnded || stream.withdrawn) return;
        stream.withdrawn = true;
        this.#traffic.onStreamDropped('unauthenticated');
        stream.end(fail('unauthenticated', 'The credentials of this stream were withdrawn, or have expired'));
      });
    }
  }

  #check(): void {
    if (this.#streams.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    for (const stream of this.#streams.all()) {
      const { raw } = stream.reply;
      const { socket } = raw;
      // A pipelined request has no socket until the response before it has ended.
      if (socket === null || raw.writableEnded) continue;
      // A stream with pending data is not idle; a comment would only add to the data.
      const isIdle = socket.bytesWritten === stream.written && socket.writableLength === 0;
      stream.idle = isIdle ? stream.idle + 1 : 0;
      stream.written = socket.bytesWritten;
      if (stream.idle >= this.#mostIdle) this.#sendHeartbeat(stream);
    }
  }

  #sendHeartbeat(stream: Stream): void {
    // Without a blank line: httpx-sse takes each blank line for the end of an event.
    stream.reply.raw.write(':\n');
    stream.written = stream.reply.raw.socket?.bytesWritten ?? stream.written;
    stream.idle = 0;
  }
}

/** Milliseconds between two looks at the credentials of all open streams. */
const reviewInterval = 1_000;

/** Ends open streams whose credentials hold no more. One timer serves all streams. */
export function reviewStreams(
  app: FastifyInstance,
  monitor: StreamMonitor,
  holds: (request: FastifyRequest) => Promise<boolean>,
): void {
  const timer = setInterval(() => monitor.review(holds), reviewInterval).unref();
  app.addHook('onClose', async () => clearInterval(timer));
}
