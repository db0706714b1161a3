import type { Delivery, DeliveryResult, UrlFailures } from '../../core/outbox.ts';
import { type PushForms, targetsOf } from '../../core/push-targets.ts';
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

/** Makes one attempt, within `attemptTimeout`, with some headers beside those of every webhook; never rejects. */
export type SendWebhook = (
  delivery: Delivery,
  signal: AbortSignal,
  headers?: Readonly<Record<string, string>>,
) => Promise<Attempt>;

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
/** Failed attempts that switch a URL off at the earliest: those of one delivery, so that few webhooks in days do not. */
const leastFailures = pauses.length + 1;
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
  readonly forms: PushForms;
  /** Milliseconds before the second attempt. */
  readonly firstPause: number;
  /** Milliseconds of failures that switch off a URL; 0 for never. */
  readonly offAfter: number;
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
    const { store, onFailure } = this.#options;
    try {
      const failures = await store.urlFailures(delivery.owner, delivery.url);
      const headers = await this.#headersOf(delivery);
      if (failures !== undefined && this.#isOff(failures)) await this.#refuse(delivery, switchedOff(failures));
      else if (headers === undefined) await this.#refuse(delivery, 'its target was removed');
      else await this.#send(delivery, headers);
      // The next one of its line may be due, or more than could be claimed.
      this.wake();
    } catch (error) {
      // The claim ends by itself, and the webhook is sent again.
      onFailure(error);
    }
  }

  /**
   * The headers for the target of a delivery; undefined where the run does not have it any more. One that was replaced
   * with another URL is another receiver: the old one must not get the secrets of the new one.
   */
  async #headersOf({ run_id, target: id, url }: Delivery): Promise<Readonly<Record<string, string>> | undefined> {
    if (id === null) return {};
    const { store, forms } = this.#options;
    const row = await store.run(run_id);
    const target = row && targetsOf(row).find((one) => one.id === id && one.url === url);
    return target && (forms[target.form ?? '']?.headersOf(target) ?? {});
  }

  async #send(delivery: Delivery, headers: Readonly<Record<string, string>>): Promise<void> {
    const { store, send, firstPause, observers } = this.#options;
    const result = resultOf(delivery, await send(delivery, this.#stopped.signal, headers), firstPause);
    await store.finishDelivery(delivery, result);
    const outcome = result.state === 'pending' ? 'retried' : result.state;
    observers.onDelivery(outcome, (Date.now() - Date.parse(delivery.created_at)) / 1000);
    if (outcome === 'delivered') return;
    const { owner, url } = delivery;
    const failures = await store.urlFailures(owner, url);
    if (failures !== undefined && this.#isOff(failures)) observers.onUrlSwitchedOff({ owner, url, ...failures });
  }

  /** Gives a webhook up without an attempt. */
  async #refuse(delivery: Delivery, error: string): Promise<void> {
    const refused: DeliveryResult = { state: 'failed', attempted_at: null, status: null, error };
    if (await this.#options.store.finishDelivery(delivery, refused)) this.#options.observers.onDeliveryRefused();
  }

  /** By the failures alone: a URL without traffic for days gets the next attempt. */
  #isOff({ attempts, since, last_at }: UrlFailures): boolean {
    const { offAfter } = this.#options;
    return offAfter > 0 && attempts >= leastFailures && Date.parse(last_at) - Date.parse(since) >= offAfter;
  }
}

const switchedOff = ({ attempts, since }: UrlFailures): string =>
  `its URL is switched off: all ${attempts} attempts since ${since} have failed; replay a webhook to switch it on`;

/** 2xx ends a delivery, and so does 410, by which a receiver says that it wants no more. */
function resultOf(
  { attempt }: Delivery,
  { status, error, retryAfter = 0 }: Attempt,
  firstPause: number,
): DeliveryResult {
  const attempted_at = iso(Date.now());
  if (status !== null && status >= 200 && status < 300)
    return { state: 'delivered', attempted_at, status, error: null };
  const pause = pauses[attempt];
  if (status === 410 || pause === undefined) return { state: 'failed', attempted_at, status, error };
  const own = firstPause * pause * (1 - jitter + 2 * jitter * Math.random());
  const wait = Math.max(own, Math.min(retryAfter * 1_000, longestPause));
  return { state: 'pending', attempted_at, status, error, next_at: iso(Date.now() + wait) };
}

/** That of an agent that was reloaded since the start may be no URL: sending it fails. */
const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url);

/** Whether the claim lasts for an attempt; otherwise another node may have it. */
const isClaimed = ({ claimed_until }: Delivery): boolean =>
  claimed_until !== null && Date.parse(claimed_until) - Date.now() > attemptTimeout;

const iso = (milliseconds: number): string => new Date(milliseconds).toISOString();
