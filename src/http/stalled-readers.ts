import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { UnorderedSet } from '../core/collections.ts';
import type { TrafficObserver } from './traffic.ts';

/** A connection with answers of this server. */
interface Watched {
  readonly socket: Socket;
  /** The newest answer; undefined where a check has found it sent. */
  reply: FastifyReply | undefined;
  /** At the last check: bytes that the kernel had taken, and bytes that waited in this process. */
  written: number;
  waiting: number;
  /** Number of checks since the client last read with bytes waiting. */
  stuck: number;
}

/** Checks during `stalledAfter`: a stalled reader is noticed at most a fourth of that time too late. */
const checksPerStall = 4;

/**
 * Drops the connections whose clients have stopped to read, whatever the answer is: a stream, a run, an error or a page.
 * Such a client would keep its socket and the pending data for ever. One timer serves all connections, and ends at the
 * first check without any. It counts checks instead of time: while this process was busy or suspended, no client could
 * read. Streams of HTTP/2 share a connection, whose other streams must not end; each of them has a window.
 */
export function dropStalledReaders(app: FastifyInstance, stalledAfter: number, traffic: TrafficObserver): void {
  if (stalledAfter === 0) return;
  const readers = new StalledReaders(stalledAfter / checksPerStall, traffic);
  // In an app that hosts this server, the hook sees only the requests of this server.
  app.addHook('onRequest', (request, reply, next) => {
    if (request.raw.httpVersionMajor < 2) readers.watch(reply, request.raw.socket);
    next();
  });
}

class StalledReaders {
  readonly #interval: number;
  readonly #traffic: TrafficObserver;
  readonly #bySocket = new WeakMap<Socket, Watched>();
  readonly #all = new UnorderedSet<Watched>();
  #timer: NodeJS.Timeout | undefined;

  constructor(interval: number, traffic: TrafficObserver) {
    this.#interval = interval;
    this.#traffic = traffic;
  }

  watch(reply: FastifyReply, socket: Socket): void {
    const known = this.#bySocket.get(socket);
    if (known === undefined) this.#add(reply, socket);
    else known.reply = reply;
  }

  #add(reply: FastifyReply, socket: Socket): void {
    if (socket.destroyed) return;
    const watched = { socket, reply, written: 0, waiting: 0, stuck: 0 };
    this.#bySocket.set(socket, watched);
    socket.once('close', this.#all.add(watched));
    this.#timer ??= setInterval(() => this.#check(), this.#interval).unref();
  }

  #check(): void {
    if (this.#all.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    for (const watched of this.#all.all()) {
      const { socket, reply } = watched;
      if (reply === undefined) continue;
      // Answers leave in the order of their requests, so all before this one were sent as well.
      if (reply.raw.writableFinished) watched.reply = undefined;
      const written = socket.bytesWritten;
      const waiting = unsentBytes(socket);
      const isStuck = waiting > 0 && waiting === watched.waiting && written === watched.written;
      watched.stuck = isStuck ? watched.stuck + 1 : 0;
      watched.written = written;
      watched.waiting = waiting;
      if (watched.stuck >= checksPerStall) this.#drop(reply, socket);
    }
  }

  #drop({ log }: FastifyReply, socket: Socket): void {
    this.#traffic.onStreamDropped('stalled');
    log.info({ waiting: socket.writableLength }, 'an answer was dropped, because its reader has stopped to read');
    try {
      // After a plain close, the kernel would keep megabytes and try to deliver them for minutes.
      socket.resetAndDestroy();
    } catch {
      // Only TCP sockets can be reset, neither TLS nor pipes.
      socket.destroy();
    }
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
