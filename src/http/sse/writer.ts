import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import type { Cursor } from '../../engine/log/cursor.ts';
import { onceGone } from '../once-gone.ts';
import { Turns } from './fair-scheduling.ts';
import { framesOf, type Piece } from './frames.ts';

/** Characters that a stream may send without waiting for anything; then it lets others have a turn. */
const charsInARow = 64 * 1024;
const turns = new Turns();
const none: readonly Piece[] = [];

/**
 * Writes what a cursor reads to the client. Calls back once, when the cursor is over or the client gone; with what
 * reading threw, if it did.
 */
export const pump = (reply: FastifyReply, cursor: Cursor, over: (error?: unknown) => void): void =>
  new Pump(reply, cursor, over).go();

class Pump {
  readonly #reply: FastifyReply;
  readonly #cursor: Cursor;
  readonly #over: (error?: unknown) => void;
  #done = false;
  #pieces: readonly Piece[] = none;
  #next = 0;
  #sent = 0;
  #turnAt = charsInARow;
  /** The turn in which it last found nothing to read. */
  #turn = turns.now;

  constructor(reply: FastifyReply, cursor: Cursor, over: (error?: unknown) => void) {
    this.#reply = reply;
    this.#cursor = cursor;
    this.#over = over;
    cursor.onReady(() => {
      // Had it to wait for this, it has caught up.
      if (this.#turn !== turns.now) [this.#sent, this.#turnAt] = [0, charsInARow];
      this.go();
    });
  }

  go(): void {
    try {
      while (this.#next < this.#pieces.length || this.#turnPage()) {
        const piece = this.#pieces[this.#next];
        this.#next += 1;
        if (piece === undefined) continue;
        this.#sent += piece.text.length;
        // Who has not taken the last piece gets no other:
        // what a reader holds is one piece and its batch, however long it does not read.
        if (write(this.#reply.raw, piece)) continue;
        this.#drained(() => this.go());
        return;
      }
    } catch (error) {
      this.#end(error);
    }
  }

  /** Whether there is a next batch now; otherwise it goes on when there is, or is done. */
  #turnPage(): boolean {
    // Between batches, so that nothing is held meanwhile.
    this.#pieces = none;
    if (this.#sent >= this.#turnAt) {
      this.#turnAt = this.#sent + charsInARow;
      turns.wait(this.#sent, () => this.go());
      return false;
    }
    const batch = this.#cursor.read();
    if (batch === 'end') {
      this.#end();
      return false;
    }
    if (batch === 'later') {
      this.#turn = turns.now;
      return false;
    }
    this.#pieces = framesOf(batch);
    this.#next = 0;
    return true;
  }

  #end(error?: unknown): void {
    if (this.#done) return;
    this.#done = true;
    this.#over(error);
  }

  /** Calls back when the socket has taken what was written; is done when it closed instead. */
  #drained(callback: () => void): void {
    const { raw } = this.#reply;
    const source = ownSocket(raw) ?? raw;
    const taken = (): void => {
      source.off('drain', taken);
      forget();
      callback();
    };
    source.on('drain', taken);
    const forget = onceGone(this.#reply, () => {
      source.off('drain', taken);
      this.#end();
    });
  }
}

/**
 * The socket, where the response has it to itself: chunks are framed here and written to it at once. Node would
 * cork the socket and write each chunk in four parts, for a quarter of all that a token costs. Undefined where
 * the chunks are not ours to frame: HTTP/1.0, a pipelined request whose turn on the socket has not come, a
 * response that somebody has put a writer of his own on, or one that is injected.
 */
function ownSocket(raw: ServerResponse): Socket | undefined {
  if (!raw.headersSent || !raw.chunkedEncoding || Object.hasOwn(raw, 'write')) return undefined;
  return raw.socket instanceof Socket ? raw.socket : undefined;
}

/** Writes a piece; answers whether another may follow. */
function write(raw: ServerResponse, { text, bytes }: Piece): boolean {
  const socket = ownSocket(raw);
  if (socket === undefined) {
    raw.write(text);
    return !raw.writableNeedDrain;
  }
  // What has as many bytes as characters is ASCII, which is cheaper to write as such.
  socket.write(`${bytes.toString(16)}\r\n${text}\r\n`, bytes === text.length ? 'latin1' : 'utf8');
  return !socket.writableNeedDrain;
}
