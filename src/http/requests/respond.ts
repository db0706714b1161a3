import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { UnorderedSet } from '../../core/collections.ts';
import { runInside } from '../../core/encode.ts';
import { fail } from '../../core/errors.ts';
import type { Batch } from '../../core/ports/run-store.ts';
import { ownerOf } from '../../core/principal.ts';
import { isSettling, runEventOf } from '../../core/recognize.ts';
import type { Access } from '../../engine/access.ts';
import type { Cursor, CursorOptions } from '../../engine/log/cursor.ts';
import { lastIdOf } from '../../engine/log/tail.ts';
import type { AcceptedRun } from '../../engine/runs/create.ts';
import type { RunMode } from '../../schema/run.ts';
import { frame, type Piece } from '../sse/frames.ts';
import {
  closeAfter,
  connectReader,
  countReader,
  type ProjectedStream,
  type Streams,
  sendProjected,
} from '../sse/projected-stream.ts';
import { after, type Projection, Projector, piecesIn } from '../sse/projection.ts';
import { type StreamOptions, sendStream } from '../sse/stream.ts';
import type { BatchSource } from '../sse/writer.ts';
import type { StreamMode } from '../traffic.ts';
import { onceClosed } from './once-closed.ts';

const json = 'application/json; charset=utf-8';

/** Answers with a text that is JSON already, whole or piece by piece. */
export const sendJson = (reply: FastifyReply, text: string | Readable): FastifyReply => reply.type(json).send(text);

/** The run of a request is in the store. The answer names it, and the limits of its caller count it there. */
export function nameRun(reply: FastifyReply, run_id: string): void {
  reply.header('run-id', run_id);
  reply.request.countedRun?.();
}

/** ACP's: a frame is an event as it is stored. */
export const eventFrames: Projection<undefined> = {
  start: undefined,
  shared: true,
  project(_, line, n, frames) {
    frames.push(frame(n, line));
    return undefined;
  },
};

const eventPieces = piecesIn(eventFrames);

/**
 * The three modes of an answer: sync collects the run stream, async detaches from it, stream pipes it to the client.
 */
export class Responder {
  readonly #streams: Streams;
  #isStopped = false;
  readonly #stopListeners = new UnorderedSet<() => void>();

  constructor(streams: Streams) {
    this.#streams = streams;
  }

  /**
   * Call this before creating a run, so that none is created whose stream is refused.
   * @throws RivuletError `too_many_streams`, `too_many_own_streams`
   */
  admit({ principal }: Access, mode: RunMode): void {
    if (mode === 'stream') this.#streams.monitor.admit(ownerOf(principal));
  }

  /** Ends the responses that wait for runs: the server stops, and its runtime goes on. */
  stop(): void {
    this.#streams.monitor.end();
    this.#isStopped = true;
    for (const listener of this.#stopListeners.all()) listener();
  }

  /** Calls back when the server stops, at once where it has. Returns an unsubscribe function. */
  #whenStopped(callback: () => void): () => void {
    if (this.#isStopped) callback();
    return this.#stopListeners.add(callback);
  }

  async respond(
    reply: FastifyReply,
    access: Access,
    { run_id, run, after }: AcceptedRun,
    mode: RunMode,
  ): Promise<FastifyReply> {
    nameRun(reply, run_id);
    switch (mode) {
      case 'async':
        return sendJson(reply.code(202), run);
      case 'sync':
        return sendJson(reply, await this.collect(reply, access, run_id, { after }));
      case 'stream':
        return this.stream(reply, access, run_id, { after, until: 'settled' }, 'run');
    }
  }

  /**
   * Pipes a run stream. Answers 204 for a final run without events after the cursor. That status stops an EventSource,
   * which reconnects after the end of any stream.
   */
  async stream(
    reply: FastifyReply,
    access: Access,
    run_id: string,
    options: CursorOptions,
    mode: StreamMode = 'events',
  ): Promise<FastifyReply> {
    const cursor = (await access.stream(run_id, { ...options, keeps: false })).cursor();
    if (cursor.exhausted) {
      cursor.close();
      return reply.code(204).send();
    }
    if (mode === 'events' && cursor.seen > 0) this.#streams.traffic.onStreamResumed(cursor.behind);
    const onClose = connectReader(reply, access, cursor);
    sendStream(reply, cursor, eventPieces, { streams: this.#streams, mode, onClose });
    return reply;
  }

  /**
   * Pipes a run stream as a protocol writes it, exactly from a position on. A client that has the last frame of an event
   * that settles the run gets the rest of that, which is nothing, until the run goes on.
   * @throws RivuletError `run_unknown`, `log_removed`, `cursor_invalid`
   */
  async project<State>(
    reply: FastifyReply,
    access: Access,
    run_id: string,
    options: ProjectedStream<State>,
  ): Promise<FastifyReply> {
    await sendProjected(reply, access, run_id, options, this.#streams);
    return reply;
  }

  /** Streams what a source of no single run gives, until it ends or the client disconnects. */
  pipe<Batch>(
    reply: FastifyReply,
    source: BatchSource<Batch>,
    piecesOf: (batch: Batch) => readonly Piece[],
    ending?: StreamOptions['ending'],
  ): FastifyReply {
    sendStream(reply, source, piecesOf, { streams: this.#streams, mode: 'runs', onClose: () => {}, ending });
    return reply;
  }

  /**
   * Waits until a run has events after a cursor or is final, for so many milliseconds at most, and no longer than
   * the client and the server are there.
   * @throws RivuletError `run_unknown`, `log_removed`, `cursor_invalid`
   */
  async grown(milliseconds: number, reply: FastifyReply, access: Access, run_id: string, after: number): Promise<void> {
    const cursor = await access.openCursor(run_id, { after, keeps: false });
    countReader(reply, access, cursor);
    const close = (): void => cursor.close();
    const unsubscribe = onceClosed(reply, close);
    const stopTimer = closeAfter(milliseconds, cursor);
    await this.#read(cursor, close).finally(() => {
      stopTimer();
      unsubscribe();
    });
  }

  /**
   * Waits until a run is settled or final, for a client whose disconnect counts. Returns the Run as JSON.
   * @throws RivuletError `stopping`, `run_unknown`, `log_removed`
   */
  async collect(
    reply: FastifyReply,
    access: Access,
    run_id: string,
    { after = 0, until = 'settled' }: CursorOptions,
  ): Promise<string> {
    const cursor = await access.openCursor(run_id, { after, until, keeps: false });
    countReader(reply, access, cursor);
    const { last, id } = await this.#lastOf(cursor);
    // The final event has the whole Run, as JSON. The event of an awaiting run does not repeat the output.
    return runEventOf(last) === 'awaiting' ? access.runAt(run_id, id) : access.count(runInside(last));
  }

  /**
   * Waits until a run is settled or final, as `sync` does, and returns the state that a protocol folds its log to.
   * @throws RivuletError `stopping`, `run_unknown`, `log_removed`
   */
  async settledState<State>(
    reply: FastifyReply,
    access: Access,
    run_id: string,
    projection: Projection<State>,
    options: CursorOptions = {},
  ): Promise<State> {
    const { cursor, projector } = await this.#openProjected(reply, access, run_id, projection, options);
    await this.#lastOf(cursor, projector.piecesOf);
    return projector.state;
  }

  /**
   * As `settledState`, where the run settles within so many milliseconds; otherwise undefined.
   * @throws RivuletError `run_unknown`, `log_removed`
   */
  async settledWithin<State>(
    milliseconds: number,
    reply: FastifyReply,
    access: Access,
    run_id: string,
    projection: Projection<State>,
    options: CursorOptions = {},
  ): Promise<State | undefined> {
    const { cursor, projector } = await this.#openProjected(reply, access, run_id, projection, options);
    const batch = await this.#read(cursor, projector.piecesOf).finally(closeAfter(milliseconds, cursor));
    return isSettling(batch?.lines.at(-1)) ? projector.state : undefined;
  }

  /** A cursor, and a projector with the events before it, for a client whose disconnect counts. */
  async #openProjected<State>(
    reply: FastifyReply,
    access: Access,
    run_id: string,
    projection: Projection<State>,
    options: CursorOptions,
  ): Promise<{ cursor: Cursor; projector: Projector<State> }> {
    const cursor = await access.openCursor(run_id, { until: 'settled', ...options });
    try {
      countReader(reply, access, cursor);
      const projector = new Projector(projection);
      const { seen } = cursor;
      if (seen > 0)
        await projector.skipTo(after(seen), await access.stream(run_id, { seen, until: 'now', keeps: false }));
      return { cursor, projector };
    } catch (error) {
      cursor.close();
      throw error;
    }
  }

  /** Reads to the event that settles a run. @throws RivuletError `stopping` */
  async #lastOf(cursor: Cursor, read?: (batch: Batch) => unknown): Promise<{ last: string; id: number }> {
    const batch = await this.#read(cursor, read);
    const last = batch?.lines.at(-1);
    // When the server stops, it hands over a durable run, which then settles on another node.
    if (last === undefined || !isSettling(last)) throw fail('stopping');
    return { last, id: lastIdOf(batch) };
  }

  /** Reads until a cursor ends or the server stops, and returns the last batch. */
  async #read(cursor: Cursor, read?: (batch: Batch) => unknown): Promise<Batch | undefined> {
    const leave = this.#whenStopped(() => cursor.close());
    try {
      let last: Batch | undefined;
      for await (const batch of cursor) {
        last = batch;
        read?.(batch);
      }
      return last;
    } finally {
      leave();
    }
  }
}

/** The events of a log as JSON, `[…]` or with another beginning and end; written as stored, one batch at a time. */
export const jsonOf = (events: AsyncIterable<Batch>, head = '[', end = ']'): Readable =>
  Readable.from(
    (async function* () {
      let before = head;
      for await (const { lines } of events) {
        yield `${before}${lines.join(',')}`;
        before = ',';
      }
      yield before === ',' ? end : `${head}${end}`;
    })(),
  );
