import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { lastValueFrom } from 'rxjs';
import { runEventOf, runInside } from '../core/encode.ts';
import { fail } from '../core/errors.ts';
import type { Engine } from '../engine/engine.ts';
import { isSettling, lastIdOf } from '../engine/log/batch.ts';
import type { CursorOptions } from '../engine/log/cursor.ts';
import type { RunStream } from '../engine/log/run-stream.ts';
import type { AcceptedRun } from '../engine/runs/create.ts';
import type { RunMode } from '../schema/run.ts';
import { onceGone } from './once-gone.ts';
import { type StreamOptions, sendStream } from './sse/stream.ts';

const json = 'application/json; charset=utf-8';

/** Answers text that is JSON already. */
export const sendJson = (reply: FastifyReply, text: string): FastifyReply => reply.type(json).send(text);

/** The three ways to answer a run that has begun: sync collects its run stream, async detaches from it, stream pipes it. */
export class Responder {
  readonly #engine: Engine;
  readonly #streams: StreamOptions;

  constructor(engine: Engine, streams: StreamOptions) {
    this.#engine = engine;
    this.#streams = streams;
  }

  /** Call it before a run is made that is to be streamed. @throws RivuletError `too_many_streams` */
  admit(mode: RunMode): void {
    if (mode === 'stream') this.#streams.open.admit();
  }

  async begun(reply: FastifyReply, { run_id, run, after }: AcceptedRun, mode: RunMode): Promise<FastifyReply> {
    reply.header('Run-ID', run_id);
    switch (mode) {
      case 'async':
        return sendJson(reply.code(202), run);
      case 'sync':
        return this.#collect(reply, run_id, { after, until: 'settled' });
      case 'stream':
        return this.stream(reply, run_id, { after, until: 'settled' });
    }
  }

  /**
   * Pipes a run stream. A run that is final, with no event left to send, answers 204: that ends an EventSource,
   * which takes the end of any stream for a reason to come back.
   */
  async stream(reply: FastifyReply, run_id: string, options: CursorOptions): Promise<FastifyReply> {
    const cursor = (await this.#engine.stream(run_id, options)).cursor();
    if (cursor.exhausted) {
      cursor.close();
      return reply.code(204).send();
    }
    sendStream(reply, cursor, this.#streams, await this.#engine.connectReader(run_id));
    return reply;
  }

  /** All events so far as `{events: […]}`, passed on as stored, a batch at a time. */
  async list(reply: FastifyReply, run_id: string, after: number): Promise<FastifyReply> {
    const events = await this.#engine.stream(run_id, { after, until: 'now' });
    return reply.type(json).send(Readable.from(listed(events)));
  }

  async #collect(reply: FastifyReply, run_id: string, options: CursorOptions): Promise<FastifyReply> {
    const leave = await this.#engine.connectReader(run_id);
    onceGone(reply, () => leave(!reply.raw.writableEnded));
    return sendJson(reply, await this.#settled(run_id, options));
  }

  async #settled(run_id: string, options: CursorOptions): Promise<string> {
    const batch = await lastValueFrom(await this.#engine.stream(run_id, options), { defaultValue: undefined });
    const last = batch?.lines.at(-1);
    // A durable run is let go of when the server stops; it settles in the next process.
    if (last === undefined || !isSettling(last)) throw fail('stopping');
    // The final event carries the whole Run, already as JSON; an event that awaits does not repeat the output.
    return runEventOf(last) === 'awaiting' ? this.#engine.runAt(run_id, lastIdOf(batch)) : runInside(last);
  }
}

async function* listed(events: RunStream): AsyncGenerator<string> {
  let before = '{"events":[';
  for await (const { lines } of events) {
    yield `${before}${lines.join(',')}`;
    before = ',';
  }
  yield before === ',' ? ']}' : `${before}]}`;
}
