import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { UnorderedSet } from '../../core/collections.ts';
import { fail, type RivuletError } from '../../core/errors.ts';
import { ownerOf } from '../../core/principal.ts';
import type { HttpLimits } from '../limits.ts';
import type { StreamMode, TrafficObserver } from '../traffic.ts';

interface StreamMonitorOptions
  extends Pick<HttpLimits, 'heartbeat' | 'stalledAfter' | 'maxStreams' | 'streamsPerOwner'> {
  readonly traffic: TrafficObserver;
}

interface Stream {
  readonly reply: FastifyReply;
  /** Completes the stream; early, for a reason that its protocol may say. */
  readonly end: (reason?: RivuletError) => void;
  /** Bytes that the kernel has taken, and bytes that wait in this process. */
  written: number;
  waiting: number;
  /** Number of checks since anything was written, and since the client last read with bytes waiting. */
  idle: number;
  stuck: number;
}

/** Checks during `stalledAfter`: a stalled stream is noticed at most a fourth of that time too late. */
const checksPerStall = 4;

/**
 * Monitors the open streams. Heartbeats (comment lines) keep an idle stream open through proxies. A stream whose client
 * has stopped reading is dropped, because it would keep its socket and pending data for ever. One timer serves all
 * streams. It ends at the first check without any: to start and end it for each of many short streams would take 8 µs
 * more. It counts checks instead of time: while this process was busy or suspended, no client could read.
 */
export class StreamMonitor {
  readonly #maxStreams: number;
  readonly #streamsPerOwner: number;
  readonly #traffic: TrafficObserver;
  readonly #interval: number;
  readonly #idleChecks: number;
  readonly #stuckChecks: number;
  readonly #streams = new UnorderedSet<Stream>();
  readonly #byOwner = new Map<string, number>();
  /** Streams that a review has ended; one whose client does not read stays open until it is dropped. */
  readonly #withdrawn = new WeakSet<Stream>();
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor({ heartbeat, stalledAfter, maxStreams, streamsPerOwner, traffic }: StreamMonitorOptions) {
    this.#traffic = traffic;
    this.#maxStreams = maxStreams;
    this.#streamsPerOwner = streamsPerOwner;
    this.#interval = stalledAfter > 0 ? Math.min(heartbeat, stalledAfter / checksPerStall) : heartbeat;
    this.#idleChecks = Math.max(1, Math.round(heartbeat / this.#interval));
    this.#stuckChecks = stalledAfter > 0 ? Math.ceil(stalledAfter / this.#interval) : Number.POSITIVE_INFINITY;
  }

  get size(): number {
    return this.#streams.size;
  }

  get full(): boolean {
    return this.#streams.size >= this.#maxStreams;
  }

  /** Whether an owner has as many open streams as it may have. */
  isFullFor(owner: string | null): boolean {
    return owner !== null && this.#streamsPerOwner > 0 && this.#ofOwner(owner) >= this.#streamsPerOwner;
  }

  /** @throws RivuletError `too_many_streams`, `too_many_own_streams` where a limit is reached */
  admit(owner: string | null): void {
    if (this.full) throw fail('too_many_streams', this.#maxStreams);
    if (!this.isFullFor(owner)) return;
    this.#traffic.onRateLimited('streams');
    throw fail('too_many_own_streams', this.#streamsPerOwner);
  }

  /** Starts to monitor a stream; `end` completes it. Returns a function that stops the monitoring. */
  add(reply: FastifyReply, mode: StreamMode, end: Stream['end']): () => void {
    reply.streamMode = mode;
    this.#traffic.onStream(mode);
    const { principal } = reply.request;
    const owner = principal === undefined ? null : ownerOf(principal);
    // Others may have opened since this one was admitted: its client comes back.
    const isTooMany = this.isFullFor(owner);
    const remove = this.#streams.add({ reply, end, written: 0, waiting: 0, idle: 0, stuck: 0 });
    this.#count(owner, 1);
    if (this.#ended || isTooMany) end();
    this.#timer ??= setInterval(() => this.#check(), this.#interval).unref();
    return () => {
      remove();
      this.#count(owner, -1);
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
  review(holds: (request: FastifyRequest) => boolean | Promise<boolean>): void {
    for (const stream of this.#streams.all()) {
      if (this.#withdrawn.has(stream)) continue;
      const { request, raw } = stream.reply;
      const settle = (isIn: boolean): void => {
        if (isIn || raw.destroyed || raw.writableEnded) return;
        this.#withdrawn.add(stream);
        this.#traffic.onStreamDropped('unauthenticated');
        stream.end(fail('unauthenticated', 'The credentials of this stream were withdrawn, or have expired'));
      };
      const held = holds(request);
      if (held instanceof Promise) void held.then(settle);
      else settle(held);
    }
  }

  #ofOwner(owner: string): number {
    return this.#byOwner.get(owner) ?? 0;
  }

  #count(owner: string | null, more: number): void {
    if (owner === null) return;
    const count = this.#ofOwner(owner) + more;
    if (count > 0) this.#byOwner.set(owner, count);
    else this.#byOwner.delete(owner);
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
      const written = socket.bytesWritten;
      const waiting = unsentBytes(socket);
      const still = written === stream.written;
      stream.idle = still ? stream.idle + 1 : 0;
      stream.stuck = still && waiting > 0 && waiting === stream.waiting ? stream.stuck + 1 : 0;
      stream.written = written;
      stream.waiting = waiting;
      if (stream.stuck >= this.#stuckChecks) this.#drop(stream.reply, socket);
      // A stream with pending data is not idle; a comment would only add to the data.
      else if (stream.idle >= this.#idleChecks && waiting === 0) this.#sendHeartbeat(stream);
    }
  }

  #drop(reply: FastifyReply, socket: Socket): void {
    this.#traffic.onStreamDropped('stalled');
    drop(reply, socket);
  }

  #sendHeartbeat(stream: Stream): void {
    // Without a blank line: httpx-sse takes each blank line for the end of an event.
    stream.reply.raw.write(':\n');
    stream.idle = 0;
    stream.written = stream.reply.raw.socket?.bytesWritten ?? stream.written;
  }
}

/**
 * Bytes that the kernel has not taken yet. `writableLength` falls only when a whole write is done, and one write may be
 * the last event of a long run, which a client reads for minutes. So this uses the counter of net's own time-outs,
 * where it exists. With a large buffer, the kernel takes bytes in large steps (on Linux a third of up to 4 MB). A
 * client that reads a few kilobytes a second may then seem to be stalled; when it is dropped, it resumes.
 */
function unsentBytes(socket: Socket): number {
  if (socket.writableLength === 0) return 0;
  const handle: unknown = Reflect.get(socket, '_handle');
  const exact = typeof handle === 'object' && handle !== null && Reflect.get(handle, 'writeQueueSize');
  return typeof exact === 'number' && exact > 0 ? exact : socket.writableLength;
}

function drop({ log }: FastifyReply, socket: Socket): void {
  log.info({ waiting: socket.writableLength }, 'a stream was dropped, because its reader has stopped to read');
  try {
    // After a plain close, the kernel would keep megabytes and try to deliver them for minutes.
    socket.resetAndDestroy();
  } catch {
    // Only TCP sockets can be reset, neither TLS nor pipes.
    socket.destroy();
  }
}
