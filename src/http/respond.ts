import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { runInside } from '../core/encode.ts';
import { fail } from '../core/errors.ts';
import type { Engine } from '../engine/engine.ts';
import { settles } from '../engine/log/batch.ts';
import type { Cursor, CursorOptions } from '../engine/log/cursor.ts';
import type { Begun } from '../engine/runs/begun.ts';
import type { RunMode } from '../schema/run.ts';
import { onceGone } from './once-gone.ts';
import { type StreamOptions, sendStream } from './sse.ts';

const json = 'application/json; charset=utf-8';

/** Answers text that is JSON already. */
export const sendJson = (reply: FastifyReply, text: string): FastifyReply => reply.type(json).send(text);

/** The three ways to answer a run that has begun: each is a reader of the same log. */
export class Responder {
  readonly #engine: Engine;
  readonly #streams: StreamOptions;

  constructor(engine: Engine, streams: StreamOptions) {
    this.#engine = engine;
    this.#streams = streams;
  }

  async begun(reply: FastifyReply, begun: Begun, mode: RunMode): Promise<FastifyReply> {
    reply.header('Run-ID', begun.run_id);
    if (mode === 'async') return sendJson(reply.code(202), begun.run);
    if (mode === 'sync') {
      const go = await this.#engine.reader(begun.run_id);
      onceGone(reply, () => go(!reply.raw.writableEnded));
      return sendJson(reply, await this.#settled(begun));
    }
    return this.stream(reply, begun.run_id, { after: begun.after, until: 'settled' });
  }

  /**
   * Follows a run. A run that is over, with nothing left to tell, answers 204: that ends an EventSource,
   * which takes the end of any stream for a reason to come back.
   */
  async stream(reply: FastifyReply, run_id: string, options: CursorOptions): Promise<FastifyReply> {
    const cursor = await this.#engine.watch(run_id, options);
    if (cursor.exhausted) {
      cursor.close();
      return reply.code(204).send();
    }
    sendStream(reply, cursor, this.#streams, await this.#engine.reader(run_id));
    return reply;
  }

  /** All events so far as `{events: […]}`, passed on as stored, a batch at a time. */
  async list(reply: FastifyReply, run_id: string, after: number): Promise<FastifyReply> {
    const cursor = await this.#engine.watch(run_id, { after, until: 'now' });
    return reply.type(json).send(Readable.from(listed(cursor)));
  }

  // The last line of a settled log is the event that carries the Run, already as JSON.
  async #settled({ run_id, after }: Begun): Promise<string> {
    const last = await lastLine(await this.#engine.watch(run_id, { after, until: 'settled' }));
    // A durable run is let go of when the server stops; it settles in the next process.
    if (last === undefined || !settles(last)) throw fail('stopping');
    return runInside(last);
  }
}

/** The last line that a cursor reads. */
function lastLine(cursor: Cursor): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    let last: string | undefined;
    const read = (): void => {
      try {
        for (let batch = cursor.read(); batch !== 'later'; batch = cursor.read()) {
          if (batch === 'over') {
            cursor.close();
            resolve(last);
            return;
          }
          last = batch.lines.at(-1);
        }
      } catch (error) {
        cursor.close();
        reject(error);
      }
    };
    cursor.onReady(read);
    read();
  });
}

async function* listed(batches: AsyncIterable<{ lines: readonly string[] }>): AsyncGenerator<string> {
  let before = '{"events":[';
  for await (const { lines } of batches) {
    yield `${before}${lines.join(',')}`;
    before = ',';
  }
  yield before === ',' ? ']}' : `${before}]}`;
}
