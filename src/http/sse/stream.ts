import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { EventMessage } from 'fastify-sse-v2';
import { encode } from '../../core/encode.ts';
import type { RivuletError } from '../../core/errors.ts';
import { refusalOf } from '../requests/errors.ts';
import { onceClosed } from '../requests/once-closed.ts';
import type { StreamMode } from '../traffic.ts';
import type { Piece } from './frames.ts';
import type { StreamMonitor } from './stream-monitor.ts';
import { type BatchSource, begin, breakOff, pump } from './writer.ts';

/** What all streams of a server share. */
export interface SharedOptions {
  readonly monitor: StreamMonitor;
  /** Milliseconds that a client waits before it reconnects; sent as the first line of the stream. */
  readonly retry: number;
}

/** How one stream is sent. */
export interface StreamOptions {
  readonly streams: SharedOptions;
  readonly mode: StreamMode;
  /** Called when the response closes, with true where its client disconnected before the end of the stream. */
  readonly onClose: (early: boolean) => void;
  /** Frames before those of the source. */
  readonly lead?: string;
  /**
   * How the response ends, in a protocol whose clients take a clean end for the end of the run: with a last text, or by
   * breaking the connection. Default: a clean end, after an error event if reading has failed.
   */
  readonly ending?: ((error: unknown) => Ending) | undefined;
}

export type Ending = 'break' | { readonly text: string };

/**
 * Streams the batches of a source to the client, ends the response after the last one, and closes the source. This is
 * the only caller of fastify-sse-v2, and uses it only for the error event of a failed stream. The library ends the process when its source
 * throws, does not close its source when the client disconnects, and ignores backpressure.
 */
export function sendStream<Batch>(
  reply: FastifyReply,
  source: BatchSource<Batch>,
  piecesOf: (batch: Batch) => readonly Piece[],
  { streams: { monitor, retry }, mode, onClose, lead = '', ending }: StreamOptions,
): void {
  const { raw } = reply;
  const closeSource = (): void => source.close();
  reply.hijack();
  reply.request.reads?.release();
  // From then on the response may close without its end being sent: its client may not read, or the protocol breaks it off.
  let isEnding = false;
  /** Why the server ends the stream early, where its protocol may say it. */
  let reason: RivuletError | undefined;
  const stopMonitoring = monitor.add(reply, mode, (why) => {
    isEnding = true;
    reason = why;
    closeSource();
  });
  const closed = (): void => {
    // Asked first: the end of the source ends the response, which has no connection where it was pipelined.
    const early = !isEnding && !raw.writableEnded;
    stopMonitoring();
    closeSource();
    onClose(early);
  };
  onceClosed(reply, closed);
  // Frees the body, which an idle stream would keep; the run no longer needs it.
  reply.request.body = undefined;
  // A broken socket emits `close` as well. Without a listener, its `error` would end the process.
  raw.on('error', closeSource);
  // Before the library writes the headers: it would send another `Cache-Control`, and pipe an extra stream.
  raw.writeHead(200, headersOf(reply));
  // In the block of the first event: httpx-sse would take a block of its own for an event without data.
  const flush = begin(raw, `retry: ${retry}\n${lead}`);
  // The client disconnected while the run was being read.
  if (raw.destroyed) return;
  // An agent that answers at once has its first output committed in the turn after the next: it goes out with the head.
  if (mode === 'run') setImmediate(() => setImmediate(flush));
  else process.nextTick(flush);
  const end = (error?: unknown): void => {
    closeSource();
    // A run may be removed while it is read, which is no failure.
    const isFailure = error !== undefined && refusalOf(error, reply.request).status >= 500;
    if (isFailure) reply.log.error({ err: error }, 'a stream ended early');
    // Also where the client has left, and the response does not know it yet.
    if (raw.destroyed || reply.request.raw.socket.destroyed) return;
    isEnding = true;
    // Without words of a protocol the end is clean: the client comes back, and is told then.
    if (ending !== undefined) finish(raw, ending(error ?? reason));
    else if (error === undefined) raw.end();
    else reply.sse(errorEvent(error, reply));
  };
  pump(reply, source, piecesOf, end, flush);
}

function finish(raw: ServerResponse, ending: Ending): void {
  if (ending === 'break') breakOff(raw);
  else raw.end(ending.text);
}

// For one call of `writeHead`: headers that are set one by one are kept as arrays until the response ends.
function headersOf(reply: FastifyReply): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) headers[name] = value;
  headers['content-type'] = 'text/event-stream; charset=utf-8';
  headers['cache-control'] = 'no-cache, no-transform';
  headers['x-accel-buffering'] = 'no';
  return headers;
}

// An error after the headers is an event without an id, and the end of the stream. Only this event goes through the
// library. It would copy each frame twice for each reader, where all readers can share one, and keep 4 KB for each
// stream.
async function* errorEvent(error: unknown, { request }: FastifyReply): AsyncGenerator<EventMessage> {
  yield { data: encode({ type: 'error', error: refusalOf(error, request).body }) };
}
