/** How much one owner may take in a time. */
export interface QuotaRule {
  /** Of `RateLimit-Policy`: `requests`, `runs` or `tokens`. */
  readonly name: string;
  readonly points: number;
  /** Seconds after which a counter begins again. */
  readonly window: number;
}

/** What is left of a quota. */
export interface QuotaState {
  readonly rule: QuotaRule;
  /** Whether the points were there. What is taken beyond them is counted as well. */
  readonly allowed: boolean;
  readonly remaining: number;
  /** Seconds until the counter begins again. */
  readonly reset: number;
}

/** The port of the counters of owners, which nodes share where they share a store. */
export interface Quotas {
  /** Whether several nodes count together. */
  readonly isShared?: boolean;
  /**
   * Takes points of an owner; at once where the counters are in this process. It never rejects: while shared counters do
   * not answer, this process counts for itself.
   */
  take(rule: QuotaRule, owner: string, points: number): QuotaState | Promise<QuotaState>;
  close(): Promise<void>;
}
