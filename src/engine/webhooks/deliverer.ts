import type { Delivery, DeliveryResult } from '../../core/outbox.ts';
import type { Store } from '../../core/store.ts';
import type { Observers } from '../observers.ts';
import { PeriodicTask } from '../periodic.ts';

/** The end of one attempt to deliver a webhook. */
export interface Attempt {
  /** The status of the answer; null where there was none. */
  readonly status: number | null;
  readonly error: string | null;
  /** Seconds after which the receiver wants the next attempt. */
  readonly retryAfter?: number;
}

/** Makes one attempt, within `attemptTimeout`; never rejects. */
export type SendWebhook = (delivery: Delivery, signal: AbortSignal) => Promise<Attempt>;

/** Milliseconds that one attempt may take. */
export const attemptTimeout = 15_000;
/** Milliseconds for which a claim lasts: then the node is taken for dead, and another one sends the webhook. */
const claimTime = 2 * attemptTimeout;
/** Attempts at once, and those to one origin: a receiver that is slow must not hold up all others. */
const concurrentAttempts = 64;
const attemptsPerOrigin = 8;
/** Webhooks of an origin that wait in memory. The claims of further ones end, and they are claimed again. */
const maxWaiting = 64;
/** Milliseconds between two looks for what is due. */
const checkInterval = 1_000;
/** The pauses between attempts, as multiples of the first: with five seconds, ten attempts in 76 hours. */
const pauses = [1, 60, 360, 1_440, 3_600, 7_200, 10_080, 14_400, 17_280];
/** The random part of a pause, so that the webhooks of an outage do not come back all at once. */
const jitter = 0.2;
/** Milliseconds: the most that a receiver may ask for. */
const longestPause = 86_400_000;

/** The webhooks to one origin. */
interface Lane {
  active: number;
  readonly waiting: Delivery[];
}

export interface DelivererOptions {
  readonly store: Store;
  readonly send: SendWebhook;
  /** Milliseconds before the second attempt. */
  readonly firstPause: number;
  readonly observers: Observers;
  /** Receives errors of the store. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Delivers the webhooks of the outbox: each at least once, and those of a run to a URL in order. Any node delivers any
 * webhook; a claim keeps others from sending it at the same time.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #task: PeriodicTask;
  readonly #stopped = new AbortController();
  readonly #attempts = new Set<Promise<void>>();
  readonly #lanes = new Map<string, Lane>();

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#task = new PeriodicTask(checkInterval, () => this.#claim(), options.onFailure);
  }

  start(): void {
    this.#task.start();
  }

  /** Ends the attempts under way: the next node repeats them. */
  async stop(): Promise<void> {
    await this.#task.stop();
    this.#stopped.abort();
    await Promise.all(this.#attempts);
  }

  /** Something may be due. */
  wake(): void {
    if (this.#task.running) void this.#claim().catch(this.#options.onFailure);
  }

  async #claim(): Promise<void> {
    const free = concurrentAttempts - this.#attempts.size;
    if (free <= 0 || this.#stopped.signal.aborted) return;
    const now = Date.now();
    const found = await this.#options.store.claimDeliveries(iso(now), iso(now + claimTime), free);
    for (const delivery of found) this.#begin(delivery);
  }

  /** Begins an attempt, or lets it wait for others to the same origin. */
  #begin(delivery: Delivery): void {
    const origin = originOf(delivery.url);
    const lane = this.#lanes.get(origin) ?? { active: 0, waiting: [] };
    this.#lanes.set(origin, lane);
    if (lane.active >= attemptsPerOrigin) {
      if (lane.waiting.length < maxWaiting) lane.waiting.push(delivery);
      return;
    }
    lane.active += 1;
    const attempt = this.#attempt(delivery).finally(() => {
      this.#attempts.delete(attempt);
      lane.active -= 1;
      if (!this.#stopped.signal.aborted) this.#beginNext(lane);
      if (lane.active === 0) this.#lanes.delete(origin);
    });
    this.#attempts.add(attempt);
  }

  #beginNext({ waiting }: Lane): void {
    let next = waiting.shift();
    while (next !== undefined && !isClaimed(next)) next = waiting.shift();
    if (next !== undefined) this.#begin(next);
  }

  async #attempt(delivery: Delivery): Promise<void> {
    const { store, send, firstPause, observers, onFailure } = this.#options;
    try {
      const result = resultOf(delivery, await send(delivery, this.#stopped.signal), firstPause);
      await store.finishDelivery(delivery, result);
      const outcome = result.state === 'pending' ? 'retried' : result.state;
      observers.onDelivery(outcome, (Date.now() - Date.parse(delivery.created_at)) / 1000);
      // The next one of its line may be due, or more than could be claimed.
      this.wake();
    } catch (error) {
      // The claim ends by itself, and the webhook is sent again.
      onFailure(error);
    }
  }
}

/** 2xx ends a delivery, and so does 410, by which a receiver says that it wants no more. */
function resultOf(
  { attempt }: Delivery,
  { status, error, retryAfter = 0 }: Attempt,
  firstPause: number,
): DeliveryResult {
  if (status !== null && status >= 200 && status < 300) return { state: 'delivered', status, error: null };
  const pause = pauses[attempt];
  if (status === 410 || pause === undefined) return { state: 'failed', status, error };
  const own = firstPause * pause * (1 - jitter + 2 * jitter * Math.random());
  const wait = Math.max(own, Math.min(retryAfter * 1_000, longestPause));
  return { state: 'pending', status, error, next_at: iso(Date.now() + wait) };
}

/** That of an agent that was reloaded since the start may be no URL: sending it fails. */
const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url);

/** Whether the claim lasts for an attempt; otherwise another node may have it. */
const isClaimed = ({ claimed_until }: Delivery): boolean =>
  claimed_until !== null && Date.parse(claimed_until) - Date.now() > attemptTimeout;

const iso = (milliseconds: number): string => new Date(milliseconds).toISOString();
