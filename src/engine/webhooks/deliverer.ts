import { setMaxListeners } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EventEmitter } from 'eventemitter3';
import { Counts } from '../../core/collections.ts';
import { FairQueue } from '../../core/fair-queue.ts';
import type { Delivery, DeliveryResult, UrlFailures } from '../../core/ports/outbox.ts';
import type { Store } from '../../core/ports/store.ts';
import { type PushForms, targetsOf } from '../../core/push-targets.ts';
import { spread } from '../../core/timing.ts';
import type { EngineEvents } from '../engine-events.ts';
import { steadyClock } from '../time/clocks.ts';
import { PeriodicTask } from '../time/periodic.ts';

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
/** Attempts at once, and those of an owner to one origin: a receiver that is slow must not hold up all others. */
const concurrentAttempts = 128;
const attemptsPerOrigin = 8;
/**
 * Webhooks that wait in memory, and those of an owner to one origin. Further ones are dropped and claimed again when their
 * claims end: a quick receiver gets this many in each `claimTime`.
 */
const maxWaiting = 8_192;
const maxWaitingPerOrigin = 1_024;
/** Milliseconds between two looks for what is due. */
const checkInterval = 1_000;
/** The pauses between attempts, as multiples of the first: with five seconds, ten attempts in 76 hours. */
const pauses = [1, 60, 360, 1_440, 3_600, 7_200, 10_080, 14_400, 17_280];
/** The shortest pause, as a part of the planned one: `spread` makes it up to 1.2 of that. */
const shortest = 0.8;
/** Failed attempts that switch a URL off at the earliest: those of one delivery, so that few webhooks in days do not. */
const leastFailures = pauses.length + 1;
/** Milliseconds: the most that a receiver may ask for. */
const longestPause = 86_400_000;

export interface DelivererOptions {
  readonly store: Store;
  readonly send: SendWebhook;
  readonly forms: PushForms;
  /** Milliseconds before the second attempt. */
  readonly firstPause: number;
  /** Milliseconds of failures that switch off a URL; 0 for never. */
  readonly offAfter: number;
  readonly events: EventEmitter<EngineEvents>;
  /** Receives errors of the store. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Delivers the webhooks of the outbox: each at least once, and those of a run to a URL in order. Any node delivers any
 * webhook; a claim keeps others from sending it at the same time.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  /**
   * The time of claims and attempts. The process of a local store goes on where the system's clock is set back. Nodes of a
   * shared store compare their times, so each of them keeps to its system's clock.
   */
  readonly #now: () => number;
  readonly #task: PeriodicTask;
  readonly #stopped = new AbortController();
  readonly #attempts = new Set<Promise<void>>();
  readonly #byOrigin = new FairQueue({ atOnce: Number.POSITIVE_INFINITY, perShare: attemptsPerOrigin });
  readonly #byOwner = new FairQueue({ atOnce: concurrentAttempts, perShare: 'free' });
  /** Webhooks that wait, by owner. */
  readonly #waiting = new Counts();

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#now = options.store.watch === undefined ? steadyClock() : Date.now;
    // Each attempt adds one. Node 20 would warn of the eleventh.
    setMaxListeners(0, this.#stopped.signal);
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

  /**
   * Goes on while more may be due. Otherwise thousands of webhooks to a slow receiver would delay those to others by a second
   * for each page.
   */
  async #claim(): Promise<void> {
    for (let free = this.#free; free > 0; free = this.#free) {
      const now = this.#now();
      const found = await this.#options.store.outbox.claimDeliveries(iso(now), iso(now + claimTime), free);
      for (const delivery of found) this.#begin(delivery);
      if (found.length < free) return;
      await nextTurn();
    }
  }

  /** Attempts that may begin now. */
  get #free(): number {
    return this.#stopped.signal.aborted ? 0 : this.#byOwner.free;
  }

  /**
   * Begins an attempt when its turn comes. The attempt waits for others of its owner to the same origin, and then for others
   * of its owner. An owner has at most as many attempts as are free, which is half of all where it is alone. So another owner
   * can begin, however many receivers are slow. The same rule holds for webhooks that wait. One that finds no room is dropped.
   */
  #begin(delivery: Delivery): void {
    const owner = delivery.owner ?? '';
    const origin = `${owner} ${originOf(delivery.url)}`;
    const hasRoom = this.#waiting.of(owner) < maxWaiting - this.#waiting.total;
    if (!hasRoom || this.#byOrigin.waiting(origin) >= maxWaitingPerOrigin) return;
    this.#waiting.add(owner, 1);
    const work = async (): Promise<void> => {
      this.#waiting.add(owner, -1);
      if (!this.#stopped.signal.aborted && isClaimed(delivery, this.#now())) await this.#attempt(delivery);
    };
    const attempt = this.#byOrigin
      .run(origin, () => this.#byOwner.run(owner, work))
      .finally(() => this.#attempts.delete(attempt));
    this.#attempts.add(attempt);
  }

  async #attempt(delivery: Delivery): Promise<void> {
    const { store, onFailure } = this.#options;
    try {
      // Its owner may have been erased while it waited.
      if ((await store.outbox.delivery(delivery.delivery_id)) === undefined) return;
      const failures = await store.outbox.urlFailures(delivery.owner, delivery.url);
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
    const { store, send, firstPause, events } = this.#options;
    const attempt = await send(delivery, this.#stopped.signal, headers);
    const result = resultOf(delivery, attempt, firstPause, this.#now());
    await store.outbox.finishDelivery(delivery, result);
    const outcome = result.state === 'pending' ? 'retried' : result.state;
    events.emit('delivery', outcome, (this.#now() - Date.parse(delivery.created_at)) / 1000);
    if (outcome === 'delivered') return;
    const { owner, url } = delivery;
    const failures = await store.outbox.urlFailures(owner, url);
    if (failures !== undefined && this.#isOff(failures)) events.emit('urlSwitchedOff', { owner, url, ...failures });
  }

  /** Gives a webhook up without an attempt. */
  async #refuse(delivery: Delivery, error: string): Promise<void> {
    const refused: DeliveryResult = { state: 'failed', attempted_at: null, status: null, error };
    if (await this.#options.store.outbox.finishDelivery(delivery, refused))
      this.#options.events.emit('deliveryRefused');
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
  now: number,
): DeliveryResult {
  const attempted_at = iso(Date.now());
  if (status !== null && status >= 200 && status < 300)
    return { state: 'delivered', attempted_at, status, error: null };
  const pause = pauses[attempt];
  if (status === 410 || pause === undefined) return { state: 'failed', attempted_at, status, error };
  const own = spread(shortest * firstPause * pause);
  const wait = Math.max(own, Math.min(retryAfter * 1_000, longestPause));
  return { state: 'pending', attempted_at, status, error, next_at: iso(now + wait) };
}

/** That of an agent that was reloaded since the start may be no URL: sending it fails. */
const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url);

/** Whether the claim lasts for an attempt; otherwise another node may have it. */
const isClaimed = ({ claimed_until }: Delivery, now: number): boolean =>
  claimed_until !== null && Date.parse(claimed_until) - now > attemptTimeout;

const iso = (milliseconds: number): string => new Date(milliseconds).toISOString();
