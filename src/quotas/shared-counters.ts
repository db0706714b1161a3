import { createHash } from 'node:crypto';
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { QuotaRule, QuotaState, Quotas } from '../core/ports/quotas.ts';

/**
 * Makes the shared counter of a rule, which falls back to the one of this process. `onUnusable` is called where it can
 * only fall back from now on: the next request makes another one.
 */
export type MakeCounter = (rule: QuotaRule, fallback: RateLimiterMemory, onUnusable: () => void) => RateLimiterAbstract;

/** The counters of a rule. */
interface Counters {
  /** Of this process. It keeps its counts when another shared counter is made. */
  readonly fallback: RateLimiterMemory;
  shared?: RateLimiterAbstract;
}

/** Characters that every database takes as a key. */
const maxKey = 150;

/** Counters that nodes share in a database, with rate-limiter-flexible: one round trip each time. */
export class SharedCounters implements Quotas {
  readonly isShared = true;
  readonly #make: MakeCounter;
  readonly #close: () => Promise<void>;
  readonly #byRule = new Map<QuotaRule, Counters>();

  constructor(make: MakeCounter, close: () => Promise<void>) {
    this.#make = make;
    this.#close = close;
  }

  async take(rule: QuotaRule, owner: string, points: number): Promise<QuotaState> {
    const key = owner.length <= maxKey ? owner : createHash('sha256').update(owner).digest('base64url');
    const counter = this.#counterOf(rule);
    try {
      return stateOf(rule, true, await counter.consume(key, points));
    } catch (error) {
      // A refusal is a result. The fallback of a shared counter takes the errors of its database.
      if (error instanceof RateLimiterRes) return stateOf(rule, false, error);
      return { rule, allowed: true, remaining: rule.points, reset: rule.window };
    }
  }

  close(): Promise<void> {
    return this.#close();
  }

  #counterOf(rule: QuotaRule): RateLimiterAbstract {
    const { name, points, window } = rule;
    const counters = this.#byRule.get(rule) ?? {
      fallback: new RateLimiterMemory({ keyPrefix: name, points, duration: window }),
    };
    this.#byRule.set(rule, counters);
    counters.shared ??= this.#make(rule, counters.fallback, () => delete counters.shared);
    return counters.shared;
  }
}

const stateOf = (rule: QuotaRule, allowed: boolean, { remainingPoints, msBeforeNext }: RateLimiterRes): QuotaState => ({
  rule,
  allowed,
  remaining: Math.max(0, remainingPoints),
  reset: Math.max(1, Math.ceil(msBeforeNext / 1_000)),
});
