import { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { onceClosed } from '../requests/once-closed.ts';
import { FairScheduler } from './fair-scheduling.ts';
import { Piece } from './frames.ts';

/** Characters that a stream may send in one turn of the event loop before it waits for other streams. */
const charsPerTurn = 64 * 1024;
const scheduler = new FairScheduler();
const none: readonly Piece[] = [];

/** What a stream reads: batches, when the client can take the next one. */
export interface BatchSource<Batch> {
  /** `later` where no batch is ready, `end` after the last one. */
  read(): Batch | 'later' | 'end';
  /** Sets the callback for when there may be more, after a read that returned `later`. */
  onReady(callback: () => void): void;
  /** Whether `read` is known to return `end` from now on. A last batch after which it is known is sent with the end. */
  readonly ended: boolean;
  close(): void;
}

/** Sends what was written to a corked socket. Does nothing when it is called again. */
export type Flush = () => void;

const nothing: Flush = () => {};

/**
 * Writes the batches of a source to the client. Calls `onEnd` once, at the end of the source or when the client has
 * disconnected; with the error, where reading failed. Calls `flush` after the first batch that it had to wait for.
 */
export const pump = <Batch>(
  reply: FastifyReply,
  source: BatchSource<Batch>,
  piecesOf: (batch: Batch) => readonly Piece[],
  onEnd: (error?: unknown) => void,
  flush: Flush,
): void => new Pump(reply, source, piecesOf, onEnd, flush).run();

class Pump<Batch> {
  readonly #reply: FastifyReply;
  readonly #source: BatchSource<Batch>;
  readonly #piecesOf: (batch: Batch) => readonly Piece[];
  readonly #onEnd: (error?: unknown) => void;
  #flush: Flush;
  #done = false;
  #pieces: readonly Piece[] = none;
  #next = 0;
  #sent = 0;
  #waitAt = charsPerTurn;
  /** The turn of the event loop in which the source last had nothing to read. */
  #emptyTurn = scheduler.turn;

  constructor(
    reply: FastifyReply,
    source: BatchSource<Batch>,
    piecesOf: (batch: Batch) => readonly Piece[],
    onEnd: (error?: unknown) => void,
    flush: Flush,
  ) {
    this.#reply = reply;
    this.#source = source;
    this.#piecesOf = piecesOf;
    this.#onEnd = onEnd;
    this.#flush = flush;
    source.onReady(() => {
      // The reader has caught up if it had to wait for this batch.
      if (this.#emptyTurn !== scheduler.turn) {
        this.#sent = 0;
        this.#waitAt = charsPerTurn;
      }
      this.run();
      this.#flush();
      this.#flush = nothing;
    });
  }

  run(): void {
    try {
      while (this.#next < this.#pieces.length || this.#nextBatch()) {
        const piece = this.#pieces[this.#next];
        this.#next += 1;
        if (piece === undefined) continue;
        this.#sent += piece.chunk.length;
        // Backpressure: wait for `drain` before the next piece. A client that does not read costs one piece and its
        // batch.
        if (write(this.#reply.raw, piece)) continue;
        this.#onceDrained(() => this.run());
        return;
      }
    } catch (error) {
      this.#end(error);
    }
  }

  /** Reads the next batch. Without one, returns false, and `run` is called again later unless the cursor has ended. */
  #nextBatch(): boolean {
    // Frees the batch while the stream waits.
    this.#pieces = none;
    if (this.#sent >= this.#waitAt) {
      this.#waitAt = this.#sent + charsPerTurn;
      scheduler.wait(this.#sent, () => this.run());
      return false;
    }
    const batch = this.#source.read();
    if (batch === 'end') {
      this.#end();
      return false;
    }
    if (batch === 'later') {
      this.#emptyTurn = scheduler.turn;
      return false;
    }
    this.#pieces = this.#piecesOf(batch);
    this.#next = 0;
    if (this.#source.ended) process.nextTick(cork(this.#reply.raw));
    return true;
  }

  #end(error?: unknown): void {
    if (this.#done) return;
    this.#done = true;
    this.#onEnd(error);
  }

  /** Calls back when the socket has taken the written data. Ends where it closes first. */
  #onceDrained(callback: () => void): void {
    const { raw } = this.#reply;
    const source = ownSocket(raw) ?? raw;
    const drained = (): void => {
      source.off('drain', drained);
      unsubscribe();
      callback();
    };
    source.on('drain', drained);
    const unsubscribe = onceClosed(this.#reply, () => {
      source.off('drain', drained);
      this.#end();
    });
  }
}

/**
 * The socket of a response, for writing chunks to it directly. Node would cork the socket and write each chunk in four
 * parts, which takes a quarter of the cost of a token. Undefined where chunks must go through the response: with
 * HTTP/1.0, for a pipelined request that has no socket yet, for an injected request, and where another program has
 * replaced `write`.
 */
function ownSocket(raw: ServerResponse): Socket | undefined {
  if (!raw.headersSent || !raw.chunkedEncoding) return undefined;
  // Also one that was put back: Node may still hold what was written through the other.
  if (Object.hasOwn(raw, 'write') || raw.write !== ServerResponse.prototype.write) return undefined;
  return raw.socket instanceof Socket ? raw.socket : undefined;
}

/**
 * Writes the head, which must be set, and the first text of the body. The returned function sends them, in one system call
 * with what was written after them. Not with `raw.write` where the next chunks go to the socket: Node 26 keeps such a text
 * until the next tick, and they would overtake it.
 */
export function begin(raw: ServerResponse, text: string): Flush {
  const flush = cork(raw);
  if (flush !== nothing) raw.flushHeaders();
  write(raw, new Piece(text));
  return flush;
}

/**
 * Joins what is written to the socket, until the returned function is called or the response ends, to one system call;
 * each takes 10 µs on the processor. Does nothing where chunks do not go to the socket directly.
 */
function cork(raw: ServerResponse): Flush {
  const socket = ownSocket(raw);
  if (socket === undefined) return nothing;
  socket.cork();
  let isCorked = true;
  return () => {
    if (isCorked) socket.uncork();
    isCorked = false;
  };
}

/** Breaks the connection of a response, after what was written to it. */
export function breakOff(raw: ServerResponse): void {
  const socket = ownSocket(raw);
  while (socket !== undefined && socket.writableCorked > 0) socket.uncork();
  raw.destroy();
}

/**
 * Writes a piece. Returns whether another one may follow before `drain`. For a response, only the result of its `write`
 * tells: `writableNeedDrain` stays true without a `drain` for an injected request, and does not exist with HTTP/2.
 */
function write(raw: ServerResponse, piece: Piece): boolean {
  const socket = ownSocket(raw);
  // As with `pipe`, only `false` waits: a replaced `write` may return nothing.
  if (socket === undefined) return raw.write(piece.text) !== false;
  socket.write(piece.chunk, piece.encoding);
  return !socket.writableNeedDrain;
}
