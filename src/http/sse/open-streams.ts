import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { UnorderedSet } from '../../core/collections.ts';
import { fail } from '../../core/errors.ts';
import type { HttpLimits } from '../limits.ts';

type OpenStreamsOptions = Pick<HttpLimits, 'heartbeat' | 'stalledAfter' | 'maxStreams'>;

interface Stream {
  readonly reply: FastifyReply;
  /** Bytes given to the socket, how many of them wait in this process, and for how many looks each has stood still. */
  written: number;
  waiting: number;
  idle: number;
  stuck: number;
}

/** A stalled stream is noticed at most this part of the time too late. */
const looksPerStall = 4;

/**
 * Looks after the streams that are open. An idle one is kept open through proxies by a comment line; one
 * whose reader has stopped to read is dropped, since it would hold a socket, and what it was last given,
 * for ever. One timer for all of them, running only while there are any. It counts looks, not time: a
 * process that was busy or suspended has not let anybody read.
 */
export class OpenStreams {
  readonly #most: number;
  readonly #every: number;
  readonly #idleLooks: number;
  readonly #stuckLooks: number;
  readonly #streams = new UnorderedSet<Stream>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ heartbeat, stalledAfter, maxStreams }: OpenStreamsOptions) {
    this.#most = maxStreams;
    this.#every = stalledAfter > 0 ? Math.min(heartbeat, stalledAfter / looksPerStall) : heartbeat;
    this.#idleLooks = Math.max(1, Math.round(heartbeat / this.#every));
    this.#stuckLooks = stalledAfter > 0 ? Math.ceil(stalledAfter / this.#every) : Number.POSITIVE_INFINITY;
  }

  get full(): boolean {
    return this.#streams.size >= this.#most;
  }

  /** @throws RivuletError `too_many_streams`, where as many are open as this server takes */
  admit(): void {
    if (this.full) throw fail('too_many_streams', this.#most);
  }

  /** Returns how to stop looking after this stream. */
  add(reply: FastifyReply): () => void {
    const go = this.#streams.add({ reply, written: 0, waiting: 0, idle: 0, stuck: 0 });
    this.#timer ??= setInterval(() => this.#look(), this.#every);
    return () => {
      go();
      if (this.#streams.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #look(): void {
    for (const stream of this.#streams.all()) {
      const { raw } = stream.reply;
      const { socket } = raw;
      // Without a socket: its request was pipelined, and another response has yet to end.
      if (socket === null || raw.writableEnded) continue;
      const written = socket.bytesWritten;
      const waiting = waitingIn(socket);
      const still = written === stream.written;
      stream.idle = still ? stream.idle + 1 : 0;
      stream.stuck = still && waiting > 0 && waiting === stream.waiting ? stream.stuck + 1 : 0;
      stream.written = written;
      stream.waiting = waiting;
      if (stream.stuck >= this.#stuckLooks) drop(stream.reply, socket);
      // A stream that waits for its reader is not idle; a comment would only lengthen its queue.
      else if (stream.idle >= this.#idleLooks && waiting === 0) this.#beat(stream);
    }
  }

  #beat(stream: Stream): void {
    // No blank line after it: httpx-sse takes each one for the end of an event.
    stream.reply.raw.write(':\n');
    stream.idle = 0;
    stream.written = stream.reply.raw.socket?.bytesWritten ?? stream.written;
  }
}

/**
 * Bytes that the kernel has not taken yet. The stream's own count falls only when a whole write is done, and
 * one write may be the last event of a long run, with minutes of reading in it; so what net's own timeouts
 * go by is asked, where it is there. The kernel takes in large steps when its buffer is large (on Linux a
 * third of at most 4 MB), so a reader of a few kilobytes a second may seem to stand still; it resumes.
 */
function waitingIn(socket: Socket): number {
  if (socket.writableLength === 0) return 0;
  const handle: unknown = Reflect.get(socket, '_handle');
  const exact = typeof handle === 'object' && handle !== null && Reflect.get(handle, 'writeQueueSize');
  return typeof exact === 'number' && exact > 0 ? exact : socket.writableLength;
}

function drop({ log }: FastifyReply, socket: Socket): void {
  log.info({ waiting: socket.writableLength }, 'a stream was dropped, because its reader has stopped to read');
  try {
    // After a mere close the kernel would keep what it holds, megabytes, trying to deliver it for minutes.
    socket.resetAndDestroy();
  } catch {
    // Only TCP can be reset, neither TLS nor a pipe.
    socket.destroy();
  }
}
