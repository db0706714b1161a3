import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { EventMessage } from 'fastify-sse-v2';
import { encode } from '../../core/encode.ts';
import type { Cursor } from '../../engine/log/cursor.ts';
import { answerTo } from '../errors.ts';
import { onceGone } from '../once-gone.ts';
import type { OpenStreams } from './open-streams.ts';
import { pump } from './writer.ts';

export interface StreamOptions {
  readonly open: OpenStreams;
  /** How long a client waits before it reconnects, in milliseconds; the stream's first line. */
  readonly retry: number;
}

/**
 * Streams what a cursor reads to the client, ends the response after the last event, and closes the cursor. `go` is
 * called when the reader has gone, with true where that was before the end.
 * The only caller of fastify-sse-v2, because the library has to be kept from some of its habits: it ends
 * the process when its source throws, never tells its source that the client has left, and reads ahead of
 * a client that does not read. So it has the end of a stream that fails, and nothing else.
 */
export function sendStream(
  reply: FastifyReply,
  cursor: Cursor,
  { open, retry }: StreamOptions,
  go: (early: boolean) => void,
): void {
  const { raw } = reply;
  const leave = (): void => cursor.close();
  reply.hijack();
  const release = open.add(reply);
  const gone = (): void => {
    release();
    leave();
    go(!raw.writableEnded);
  };
  onceGone(reply, gone);
  // An idle stream would hold it: the run has what it needs of it.
  reply.request.body = undefined;
  // A socket that breaks reports `close` as well; without a listener its error would end the process.
  raw.on('error', leave);
  // Before the library does: it would send `Cache-Control` in another spelling, and pump an extra stream.
  raw.writeHead(200, headersOf(reply));
  // The first line of the first event's block. A block of its own would be an event without data to httpx-sse.
  raw.write(`retry: ${retry}\n`);
  // It left while its run was being looked up.
  if (raw.destroyed) {
    gone();
    return;
  }
  pump(reply, cursor, (error) => {
    leave();
    if (error !== undefined) reply.log.error({ err: error }, 'a stream ended before its run');
    if (raw.destroyed) return;
    if (error === undefined) raw.end();
    else reply.sse(lastWords(error, reply));
  });
}

// All at once: headers that are set one by one are kept for as long as the response, each as an array.
function headersOf(reply: FastifyReply): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) headers[name] = value;
  headers['content-type'] = 'text/event-stream; charset=utf-8';
  headers['cache-control'] = 'no-cache, no-transform';
  headers['x-accel-buffering'] = 'no';
  return headers;
}

// All that goes by way of the library: frames are written past it, since it would copy each for each reader, twice,
// where all can share it, and hold 4 KB for each stream, however idle. What goes wrong after the headers is an event
// without an id, and the end of the stream.
async function* lastWords(error: unknown, { request }: FastifyReply): AsyncGenerator<EventMessage> {
  yield { data: encode({ type: 'error', error: answerTo(error, request).body }) };
}
