import type { QuotaRule, QuotaState, Quotas } from '../core/ports/quotas.ts';

interface Counter {
  taken: number;
  /** As `performance.now`: the clock of the machine may be set back. */
  readonly until: number;
}

/** Counters that have ended and that one call removes: more than it adds, and no request pays for many. */
const removedAtOnce = 2;

/**
 * Counters of this process, in plain numbers, without a promise for each request.
 */
export class OwnCounters implements Quotas {
  /** By rule and owner, in the order in which they end. */
  readonly #byRule = new Map<QuotaRule, Map<string, Counter>>();

  take(rule: QuotaRule, owner: string, points: number): QuotaState {
    const now = performance.now();
    const counter = this.#counterOf(rule, owner, now);
    counter.taken += points;
    return {
      rule,
      allowed: counter.taken <= rule.points,
      remaining: Math.max(0, rule.points - counter.taken),
      reset: Math.max(1, Math.ceil((counter.until - now) / 1_000)),
    };
  }

  /** The number of counters that are kept. */
  get size(): number {
    return [...this.#byRule.values()].reduce((sum, { size }) => sum + size, 0);
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
    ofRule.delete(owner);
    removeEnded(ofRule, now);
    const counter = { taken: 0, until: now + rule.window * 1_000 };
    ofRule.set(owner, counter);
    return counter;
  }
}

function removeEnded(counters: Map<string, Counter>, now: number): void {
  let left = removedAtOnce;
  for (const [owner, { until }] of counters) {
    if (until > now || left === 0) return;
    counters.delete(owner);
    left -= 1;
  }
}
