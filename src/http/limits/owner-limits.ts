import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Counts } from '../../core/collections.ts';
import { fail, type RivuletError } from '../../core/errors.ts';
import type { QuotaRule, QuotaState, Quotas } from '../../core/ports/quotas.ts';
import { ownerOf } from '../../core/principal.ts';
import type { Engine } from '../../engine/engine.ts';
import { readsStream } from '../requests/negotiation.ts';
import { onceClosed } from '../requests/once-closed.ts';
import type { StreamMonitor } from '../sse/stream-monitor.ts';
import type { TrafficObserver } from '../traffic.ts';
import type { HttpLimits } from './limits.ts';
import { type Checked, checkWork } from './work.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Called when the run of the request is in the store, where it is counted. */
    countedRun: (() => void) | undefined;
  }
}

export interface OwnerLimitsOptions {
  readonly engine: Engine;
  readonly quotas: Quotas;
  readonly limits: HttpLimits;
  readonly monitor: StreamMonitor;
  readonly traffic: TrafficObserver;
}

/**
 * The limits of each owner: a principal, or all principals of a tenant. Requests without an owner have none. Reads of
 * streams are not rated, because a native EventSource would end for ever at a 429. They are counted, and those beyond
 * the limit are broken off, so that the EventSource comes back later.
 */
export function limitOwners(app: FastifyInstance, options: OwnerLimitsOptions): void {
  const limits = new OwnerLimits(options);
  app.decorateRequest('countedRun', undefined);
  /** Connections whose last request was refused. */
  const refused = new WeakSet<Socket>();
  checkWork(app, async (checked, request, reply) => {
    const owner = request.principal === undefined ? null : ownerOf(request.principal);
    if (owner === null) return;
    const { socket } = request.raw;
    try {
      await limits.check(owner, checked, request, reply);
      refused.delete(socket);
    } catch (error) {
      if (refused.has(socket)) await wait(pause);
      refused.add(socket);
      throw error;
    }
  });
  if (options.limits.tokensPerDay === 0) return;
  const { engine } = options;
  const unobserve = [
    engine.on('tokens', (owner, tokens) => limits.countTokens(owner, tokens)),
    engine.on('runEnded', ({ row, work }) => limits.countTokens(row.owner, work?.sinceAwait ?? 0)),
  ];
  app.addHook('onClose', async () => {
    for (const one of unobserve) one();
  });
}

/**
 * Milliseconds that a refusal takes on a connection whose request before was refused as well. A client that goes on
 * without a pause would otherwise take the time of all others.
 */
const pause = 1_000;
/** Seconds. */
const [minute, day] = [60, 86_400];

class OwnerLimits {
  readonly #options: OwnerLimitsOptions;
  readonly #requests: QuotaRule;
  readonly #runs: QuotaRule;
  readonly #tokens: QuotaRule;
  /** By owner, the requests whose runs are not in the store yet: many may come at once. */
  readonly #starting = new Counts();

  constructor(options: OwnerLimitsOptions) {
    this.#options = options;
    const { requestsPerMinute, runsPerMinute, tokensPerDay } = options.limits;
    this.#requests = { name: 'requests', points: requestsPerMinute, window: minute };
    this.#runs = { name: 'runs', points: runsPerMinute, window: minute };
    this.#tokens = { name: 'tokens', points: tokensPerDay, window: day };
  }

  /** A reader of a stream is not refused: its connection is broken off. @throws RivuletError with the status 429 */
  async check(owner: string, { work, again }: Checked, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (readsStream(request)) {
      if (!this.#options.monitor.isFullFor(owner)) return;
      this.#options.traffic.onRateLimited('streams');
      reply.hijack();
      request.raw.destroy();
      return;
    }
    const rules = this.#rulesOf(work === 'creates', again);
    const states = await Promise.all(rules.map((rule) => this.#options.quotas.take(rule, owner, 1)));
    if (states.length > 0) {
      addTo(reply, 'ratelimit-policy', rules.map(policyOf).join(', '));
      addTo(reply, 'ratelimit', states.map(textOf).join(', '));
    }
    const refused = states.find(({ allowed }) => !allowed);
    if (refused !== undefined) throw this.#refusal(reply, refused);
    if (work !== undefined) await this.#checkRuns(owner, request, reply);
  }

  /** A request that is checked again has been counted already. */
  #rulesOf(creates: boolean, again: boolean): QuotaRule[] {
    return [...(again ? [] : [this.#requests]), ...(creates ? [this.#runs] : [])].filter(isOn);
  }

  /** @throws RivuletError `too_many_own_runs`, `quota_exceeded` */
  async #checkRuns(owner: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { engine, quotas, limits } = this.#options;
    const { runsPerOwner } = limits;
    if (isOn(this.#tokens)) {
      const state = await quotas.take(this.#tokens, owner, 0);
      if (state.remaining === 0) throw this.#refusal(reply, state);
    }
    if (runsPerOwner === 0) return;
    const before = this.#starting.of(owner);
    request.countedRun = this.#reserve(owner);
    onceClosed(reply, request.countedRun);
    const open = await engine.openRuns(owner);
    const working = open.reduce((sum, { status, count }) => (status === 'awaiting' ? sum : sum + count), before);
    if (working < runsPerOwner) return;
    this.#options.traffic.onRateLimited('runs_at_once');
    reply.header('Retry-After', '1');
    throw fail('too_many_own_runs', runsPerOwner);
  }

  /** Counts a run that begins, until the returned function is called. */
  #reserve(owner: string): () => void {
    this.#starting.add(owner, 1);
    let isCounted = true;
    return () => {
      if (isCounted) this.#starting.add(owner, -1);
      isCounted = false;
    };
  }

  #refusal(reply: FastifyReply, { rule, reset }: QuotaState): RivuletError {
    this.#options.traffic.onRateLimited(rule.name);
    reply.header('Retry-After', String(reset));
    return fail('quota_exceeded', rule.points, rule.name, rule.window, reset);
  }

  /** Counts the tokens of a run that has ended, or awaits. The last run of a day may exceed the limit. */
  countTokens(owner: string | null, tokens: number): void {
    // A replay of steps may report less than the execution before it.
    if (owner === null || tokens <= 0) return;
    void this.#options.quotas.take(this.#tokens, owner, Math.ceil(Math.min(tokens, maxPoints)));
  }
}

/** The databases count in 32 bits. */
const maxPoints = 1_000_000_000;

const isOn = ({ points }: QuotaRule): boolean => points > 0;

/** Adds to a header that has a list: a request may be checked twice. */
function addTo(reply: FastifyReply, name: string, value: string): void {
  const before = reply.getHeader(name);
  reply.header(name, before === undefined ? value : `${before}, ${value}`);
}

// Items of the header fields of draft-ietf-httpapi-ratelimit-headers-11.
const policyOf = ({ name, points, window }: QuotaRule): string => `"${name}";q=${points};w=${window}`;
const textOf = ({ rule, remaining, reset }: QuotaState): string => `"${rule.name}";r=${remaining};t=${reset}`;
