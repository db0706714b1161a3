import type { QuotaRule, QuotaState, Quotas } from '../core/quotas.ts';

interface Counter {
  taken: number;
  /** Epoch, milliseconds. */
  readonly until: number;
}

/**
 * Counters of this process, in plain numbers: 0.1 µs each time, without a promise. rate-limiter-flexible takes ten times
 * that, and loading it 5 ms of each start.
 */
export class OwnCounters implements Quotas {
  /** By rule and owner, in the order in which they end. */
  readonly #byRule = new Map<QuotaRule, Map<string, Counter>>();

  take(rule: QuotaRule, owner: string, points: number): QuotaState {
    const now = Date.now();
    const counter = this.#counterOf(rule, owner, now);
    counter.taken += points;
    return {
      rule,
      allowed: counter.taken <= rule.points,
      remaining: Math.max(0, rule.points - counter.taken),
      reset: Math.max(1, Math.ceil((counter.until - now) / 1_000)),
    };
  }

  async close(): Promise<void> {}

  #counterOf(rule: QuotaRule, owner: string, now: number): Counter {
    let ofRule = this.#byRule.get(rule);
    if (ofRule === undefined) {
      ofRule = new Map();
      this.#byRule.set(rule, ofRule);
    }
    const known = ofRule.get(owner);
    if (known !== undefined && known.until > now) return known;
    removeEnded(ofRule, now);
    const counter = { taken: 0, until: now + rule.window * 1_000 };
    ofRule.set(owner, counter);
    return counter;
  }
}

/** Each counter is removed once, so this costs nothing over time; the clock may be set back, which only delays it. */
function removeEnded(counters: Map<string, Counter>, now: number): void {
  for (const [owner, { until }] of counters) {
    if (until > now) return;
    counters.delete(owner);
  }
}
