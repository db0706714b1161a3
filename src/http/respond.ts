import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { lastValueFrom, ReplaySubject, takeUntil } from 'rxjs';
import { runEventOf, runInside } from '../core/encode.ts';
import { fail } from '../core/errors.ts';
import { ownerOf } from '../core/principal.ts';
import type { RunFilter } from '../core/store.ts';
import type { Access } from '../engine/access.ts';
import type { ChangesOptions } from '../engine/changes/change-reader.ts';
import { isSettling, lastIdOf } from '../engine/log/batch.ts';
import type { CursorOptions } from '../engine/log/cursor.ts';
import type { RunStream } from '../engine/log/run-stream.ts';
import type { AcceptedRun } from '../engine/runs/create.ts';
import type { RunMode } from '../schema/run.ts';
import { onceClosed } from './once-closed.ts';
import { changeFramesOf, framesOf } from './sse/frames.ts';
import { Pulled } from './sse/pulled.ts';
import { type StreamOptions, sendStream } from './sse/stream.ts';
import type { StreamMode, TrafficObserver } from './traffic.ts';

const json = 'application/json; charset=utf-8';

/** Answers with a text that is JSON already. */
export const sendJson = (reply: FastifyReply, text: string): FastifyReply => reply.type(json).send(text);

/**
 * The three modes of an answer: sync collects the run stream, async detaches from it, stream pipes it to the client.
 */
export class Responder {
  readonly #streams: StreamOptions;
  readonly #traffic: TrafficObserver;
  readonly #stopped = new ReplaySubject<void>(1);

  constructor(streams: StreamOptions, traffic: TrafficObserver) {
    this.#streams = streams;
    this.#traffic = traffic;
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
    this.#stopped.next();
  }

  async respond(
    reply: FastifyReply,
    access: Access,
    { run_id, run, after }: AcceptedRun,
    mode: RunMode,
  ): Promise<FastifyReply> {
    reply.header('Run-ID', run_id);
    reply.request.countedRun?.();
    switch (mode) {
      case 'async':
        return sendJson(reply.code(202), run);
      case 'sync':
        return this.#collect(reply, access, run_id, { after, until: 'settled' });
      case 'stream':
        return this.stream(reply, access, run_id, { after, until: 'settled' }, 'run');
    }
  }

  /**
   * Pipes a run stream. Answers 204 for a final run without events after the cursor. That status stops an EventSource,
   * which reconnects after the end of any stream. A reader that only watches does not count for `On-Disconnect`: by
   * leaving, the holder of a stream ticket would cancel the run.
   */
  async stream(
    reply: FastifyReply,
    access: Access,
    run_id: string,
    options: CursorOptions,
    mode: StreamMode = 'events',
  ): Promise<FastifyReply> {
    const cursor = (await access.stream(run_id, options)).cursor();
    if (cursor.exhausted) {
      cursor.close();
      return reply.code(204).send();
    }
    if (mode === 'events' && cursor.seen > 0) this.#traffic.onStreamResumed(cursor.behind);
    const onClose = reply.request.hasTicket ? () => {} : await access.connectReader(run_id);
    sendStream(reply, cursor, framesOf, { ...this.#streams, mode, onClose });
    return reply;
  }

  /** Streams the states of the runs that match a filter, and then each change, until the client disconnects. */
  async streamRuns(
    reply: FastifyReply,
    access: Access,
    filter: RunFilter,
    options: ChangesOptions,
  ): Promise<FastifyReply> {
    const reader = await access.watchRuns(filter, options);
    const source = new Pulled(reader, () => reader.close());
    sendStream(reply, source, changeFramesOf, { ...this.#streams, mode: 'runs', onClose: () => {} });
    return reply;
  }

  /** All events so far as `{events: […]}`, written as stored, one batch at a time. */
  async list(reply: FastifyReply, access: Access, run_id: string, after: number): Promise<FastifyReply> {
    const events = await access.stream(run_id, { after, until: 'now' });
    return reply.type(json).send(Readable.from(eventList(events)));
  }

  async #collect(reply: FastifyReply, access: Access, run_id: string, options: CursorOptions): Promise<FastifyReply> {
    const leave = await access.connectReader(run_id);
    onceClosed(reply, () => leave(!reply.raw.writableEnded));
    return sendJson(reply, await this.#settledRun(access, run_id, options));
  }

  async #settledRun(access: Access, run_id: string, options: CursorOptions): Promise<string> {
    const events = (await access.stream(run_id, options)).pipe(takeUntil(this.#stopped));
    const batch = await lastValueFrom(events, { defaultValue: undefined });
    const last = batch?.lines.at(-1);
    // When the server stops, it hands over a durable run, which then settles on another node.
    if (last === undefined || !isSettling(last)) throw fail('stopping');
    // The final event has the whole Run, as JSON. The event of an awaiting run does not repeat the output.
    return runEventOf(last) === 'awaiting' ? access.runAt(run_id, lastIdOf(batch)) : runInside(last);
  }
}

async function* eventList(events: RunStream): AsyncGenerator<string> {
  let before = '{"events":[';
  for await (const { lines } of events) {
    yield `${before}${lines.join(',')}`;
    before = ',';
  }
  yield before === ',' ? ']}' : `${before}]}`;
}
