import type { FastifyReply } from 'fastify';
import type { EventMessage } from 'fastify-sse-v2';
import { encode } from '../core/encode.ts';
import { errorOf } from '../core/errors.ts';
import type { Batch } from '../core/store.ts';
import type { Heartbeat } from './heartbeat.ts';

/** One event as SSE has it: `id` is its place in the run, `data` its JSON, LF only. */
export const frame = (id: number, line: string): string => `id: ${id}\ndata: ${line}\n\n`;

const framed = new WeakMap<Batch, string>();

/** The frames of a batch as one text, made once however many read it. */
export function framesOf(batch: Batch): string {
  let text = framed.get(batch);
  if (text === undefined) {
    text = '';
    let id = batch.first;
    for (const line of batch.lines) {
      text += frame(id, line);
      id += 1;
    }
    framed.set(batch, text);
  }
  return text;
}

/**
 * fastify-sse-v2 writes a message as `id: …`, its data and an empty line. A whole batch goes through it as
 * one message, so one write, by way of the id: everything between the first `id: ` and the last `\n\n`.
 */
const batchMessage = (batch: Batch): EventMessage => ({ id: framesOf(batch).slice(4, -2) });

export interface StreamOptions {
  readonly heartbeat: Heartbeat;
  /** How long a client waits before it reconnects, in milliseconds; the stream's first line. */
  readonly retry: number;
}

/**
 * Streams batches to the client and ends the response after the last one.
 * The only caller of fastify-sse-v2, because the library has to be kept from some of its habits: it ends
 * the process when its source throws, and never tells its source that the client has left.
 * `leave` is called when the client has gone; the batches have to end after it.
 */
export function sendStream(
  reply: FastifyReply,
  batches: AsyncIterable<Batch>,
  { heartbeat, retry }: StreamOptions,
  leave: () => void,
): void {
  const { raw } = reply;
  reply.hijack();
  const release = heartbeat.add(raw);
  raw.once('close', () => {
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

// Never throws: what goes wrong after the headers is an event without an id, and the end of the stream.
async function* messages(reply: FastifyReply, batches: AsyncIterable<Batch>): AsyncGenerator<EventMessage> {
  try {
    for await (const batch of batches) yield batchMessage(batch);
  } catch (error) {
    reply.log.error({ err: error }, 'a stream ended before its run');
    yield { data: encode({ type: 'error', error: errorOf(error) }) };
  }
}
