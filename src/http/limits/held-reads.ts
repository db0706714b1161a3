import type { FastifyInstance, FastifyReply } from 'fastify';
import { Counts } from '../../core/collections.ts';
import { fail, type RivuletError } from '../../core/errors.ts';
import { FairQueue } from '../../core/fair-queue.ts';
import { ownerOf } from '../../core/principal.ts';
import type { ReadBudget } from '../../engine/store/read-budget.ts';
import { onceClosed } from '../requests/once-closed.ts';
import type { TrafficObserver } from '../traffic.ts';
import { turnForLargeWork, writeInPieces } from './large-work.ts';
import type { HttpLimits } from './limits.ts';
import type { Overload } from './overload.ts';
import { workOf } from './work.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the request has read and still holds. */
    reads: RequestReads | undefined;
  }
}

export interface HeldReadsOptions {
  readonly limits: Pick<HttpLimits, 'readLimit' | 'readsPerOwner'>;
  readonly overload: Pick<Overload, 'isFull' | 'refuse'>;
  /** Characters that all requests may hold together. */
  readonly most: number;
  readonly traffic: TrafficObserver;
}

/** Characters after which a list ends with the item that exceeds them. */
const pageChars = 4 * 1024 * 1024;
/** A request that holds fewer characters is not counted with the other requests. */
const smallChars = 64 * 1024;
/** Work on more characters takes milliseconds. */
const largeChars = 1024 * 1024;
/** Seconds until a request that finds no room is sent again. */
const retryAfter = '5';

/**
 * The characters that requests have read from the store for their answers. A request holds them until its response has
 * left or its connection is closed: a client that does not read keeps them in memory. A stream holds none, because it
 * writes each event and drops it.
 */
export class HeldReads {
  readonly #options: HeldReadsOptions;
  /** What a read finds is counted after it, so that a caller has a few at a time. */
  readonly queue = new FairQueue({ atOnce: 64, perShare: 4 });
  readonly #byOwner = new Counts();
  /** Owners whose last read found no room, until one of their answers has left. */
  readonly #refused = new Set<string>();

  constructor(options: HeldReadsOptions) {
    this.#options = options;
  }

  /** Gives each request a budget. */
  watch(app: FastifyInstance): void {
    app.decorateRequest('reads', undefined);
    app.addHook('onRequest', (request, reply, next) => {
      request.reads = new RequestReads(reply, this);
      next();
    });
    app.addHook('preSerialization', async (request, _reply, payload) => {
      await request.reads?.turn();
      return payload;
    });
    writeInPieces(app);
  }

  get readLimit(): number {
    return this.#options.limits.readLimit;
  }

  add(owner: string | null, chars: number): void {
    if (owner !== null && chars < 0) this.#refused.delete(owner);
    this.#byOwner.add(owner ?? '', chars);
  }

  /** Checks that there is room for so many characters more. @throws RivuletError `too_many_own_reads`, `too_busy` */
  check(reply: FastifyReply, owner: string | null, chars: number): void {
    const { overload, most, limits, traffic } = this.#options;
    const { readsPerOwner } = limits;
    if (
      owner !== null &&
      readsPerOwner > 0 &&
      (this.#refused.has(owner) || this.#byOwner.of(owner) + chars > readsPerOwner)
    ) {
      // Nothing would remove it where the caller holds nothing.
      if (this.#byOwner.of(owner) > 0) this.#refused.add(owner);
      traffic.onRateLimited('reads');
      throw later(reply, fail('too_many_own_reads', readsPerOwner));
    }
    if (this.#byOwner.total + chars > most)
      throw later(reply, fail('too_busy', 'The answers that clients have not read yet fill the server’s memory'));
    if (!overload.isFull) return;
    reply.header('Retry-After', retryAfter);
    overload.refuse();
  }
}

function later(reply: FastifyReply, error: RivuletError): RivuletError {
  reply.header('Retry-After', retryAfter);
  return error;
}

/** What one request has read and still holds. */
class RequestReads implements ReadBudget {
  readonly #reply: FastifyReply;
  readonly #all: HeldReads;
  #chars = 0;
  /** The part that is counted with the other requests. */
  #counted = 0;

  constructor(reply: FastifyReply, all: HeldReads) {
    this.#reply = reply;
    this.#all = all;
  }

  async turn(): Promise<void> {
    if (this.#chars > largeChars) await turnForLargeWork();
  }

  get pageFull(): boolean {
    return this.#chars > Math.min(pageChars, this.#all.readLimit);
  }

  /**
   * A request that makes a run work is refused before that, where there is no room: its run would work for an answer that
   * is refused. @throws RivuletError as `HeldReads.check`
   */
  begin(): void {
    if (workOf(this.#reply.request) !== undefined) this.#all.check(this.#reply, this.#owner, 0);
  }

  /** @throws RivuletError as `take` */
  read(read: () => Promise<string>): Promise<string> {
    return this.#all.queue.run(this.#owner ?? '', async () => {
      const isStream = this.#reply.streamMode !== undefined;
      if (!isStream && workOf(this.#reply.request) === undefined) this.#all.check(this.#reply, this.#owner, 0);
      const text = await read();
      this.take(text.length);
      await this.turn();
      return text;
    });
  }

  /** @throws RivuletError `read_too_large`, and as `HeldReads.check` */
  take(chars: number): void {
    const isStream = this.#reply.streamMode !== undefined;
    const held = isStream ? chars : this.#chars + chars;
    if (held > this.#all.readLimit) throw fail('read_too_large', this.#all.readLimit);
    const { raw } = this.#reply;
    // What goes on after the answer is of no client.
    if (isStream || raw.writableFinished || raw.destroyed) return;
    this.#chars = held;
    if (held <= smallChars) return;
    const more = held - this.#counted;
    if (workOf(this.#reply.request) === undefined) this.#all.check(this.#reply, this.#owner, more);
    if (this.#counted === 0) onceClosed(this.#reply, () => this.release());
    this.#counted = held;
    this.#all.add(this.#owner, more);
  }

  /** The response has left, or is a stream from now on. */
  release(): void {
    this.#all.add(this.#owner, -this.#counted);
    this.#counted = 0;
    this.#chars = 0;
  }

  get #owner(): string | null {
    const { principal } = this.#reply.request;
    return principal === undefined ? null : ownerOf(principal);
  }
}
