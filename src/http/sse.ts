import type { FastifyReply } from 'fastify';
import type { EventMessage } from 'fastify-sse-v2';
import { encode } from '../core/encode.ts';
import { errorOf } from '../core/errors.ts';
import type { Batch } from '../core/store.ts';
import { framesOf } from './frames.ts';
import type { OpenStreams } from './open-streams.ts';
import { Turns } from './turns.ts';

export interface StreamOptions {
  readonly open: OpenStreams;
  /** How long a client waits before it reconnects, in milliseconds; the stream's first line. */
  readonly retry: number;
}

/**
 * Streams batches to the client and ends the response after the last one.
 * The only caller of fastify-sse-v2, because the library has to be kept from some of its habits: it ends
 * the process when its source throws, never tells its source that the client has left, and reads ahead of
 * a client that does not read.
 * `leave` is called when the client has gone; the batches have to end after it.
 */
export function sendStream(
  reply: FastifyReply,
  batches: AsyncIterable<Batch>,
  { open, retry }: StreamOptions,
  leave: () => void,
): void {
  const { raw } = reply;
  reply.hijack();
  const release = open.add(reply);
  onceGone(reply, () => {
    release();
    leave();
  });
  // A socket that breaks reports `close` as well; without a listener its error would end the process.
  raw.on('error', leave);
  // Before the library does: it would send `Cache-Control` in another spelling, and pump an extra stream.
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) raw.setHeader(name, value);
  raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  });
  raw.write(`retry: ${retry}\n\n`);
  if (raw.destroyed) leave();
  else reply.sse(messages(reply, batches));
}

/** Characters that a stream may send without waiting for anything; then it lets others have a turn. */
const charsInARow = 64 * 1024;
const turns = new Turns();

// What the library pumps: it drives the reading and ends the response, while batches are written past it.
// Never throws: what goes wrong after the headers is an event without an id, and the end of the stream.
async function* messages(reply: FastifyReply, batches: AsyncIterable<Batch>): AsyncGenerator<EventMessage> {
  try {
    let sent = 0;
    let turnAt = charsInARow;
    let turn = turns.now;
    for await (const batch of batches) {
      // Had it to wait for this one, it has caught up.
      if (turn !== turns.now) [sent, turnAt] = [0, charsInARow];
      for (const piece of framesOf(batch)) {
        // Not by way of the library: it would copy the text for each reader, twice, where all can share it.
        reply.raw.write(piece);
        sent += piece.length;
        // Who has not taken the last piece gets no other:
        // what a reader holds is one piece and its batch, however long it does not read.
        if (reply.raw.writableNeedDrain && !(await drained(reply))) return;
      }
      // Between batches, so that nothing is held meanwhile.
      if (sent >= turnAt) {
        await turns.mine(sent);
        turnAt = sent + charsInARow;
      }
      turn = turns.now;
    }
  } catch (error) {
    reply.log.error({ err: error }, 'a stream ended before its run');
    yield { data: encode({ type: 'error', error: errorOf(error) }) };
  }
}

/** Whether the socket has taken what was written; false when it closed instead. */
function drained(reply: FastifyReply): Promise<boolean> {
  const { raw } = reply;
  return new Promise((resolve) => {
    const settle = (whether: boolean): void => {
      raw.off('drain', taken);
      forget();
      resolve(whether);
    };
    const taken = (): void => settle(true);
    raw.on('drain', taken);
    const forget = onceGone(reply, () => settle(false));
  });
}

/**
 * Calls back once, when the response has closed or its connection has; returns how not to. A response whose
 * request was pipelined has no connection before the earlier ones have ended, and never tells of its close.
 */
export function onceGone({ raw, request }: FastifyReply, callback: () => void): () => void {
  const { socket } = request.raw;
  const forget = (): void => {
    raw.off('close', gone);
    socket.off('close', gone);
  };
  const gone = (): void => {
    forget();
    callback();
  };
  raw.on('close', gone);
  socket.on('close', gone);
  return forget;
}
