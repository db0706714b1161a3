/** What runs may take, and how long. A run that goes over ends `failed`; the server goes on. Zero is for never. */
export interface Limits {
  /** Events that the agent may cause in one run. Default 1,000,000. */
  readonly events: number;
  /** Characters of JSON in those events. Default 256 Mi. */
  readonly chars: number;
  /** Characters waiting for the store before an agent's iterable is held back. Default 256 Ki. */
  readonly backlog: number;
  /**
   * Runs at work at once in a process; awaiting and queued ones do not count. One more is refused with 503, or where
   * several processes share the work, waits until one of them has room. Default 10,000.
   */
  readonly running: number;
  /** Runs of one session that may be unfinished when one more is queued behind them (429). Default 1,000. */
  readonly queued: number;
  /** Milliseconds that a cancelled agent has to stop in. Default 5,000. */
  readonly cancelDeadline: number;
  /** Milliseconds that a run may be at work, awaits left out. Default one hour. */
  readonly runTime: number;
  /** Milliseconds that a run may await an answer. Default seven days. */
  readonly awaitTime: number;
  /** Milliseconds that a run at work may say nothing. Default ten minutes. */
  readonly silence: number;
  /** Milliseconds after which an awaiting durable run leaves memory. Default 60,000. */
  readonly passivateAfter: number;
  /** How often a durable run is re-entered without getting on. Default 3. */
  readonly attempts: number;
  /** Milliseconds that a final run is kept. Default 30 days. */
  readonly keepRuns: number;
  /** Milliseconds that an Idempotency-Key is kept. Default 24 hours. */
  readonly keepKeys: number;
  /** Milliseconds that pinned runs get when the server stops. Default 10,000. */
  readonly stopTime: number;
  /** Milliseconds between looks at all of these times. Default 1,000. */
  readonly sweepEvery: number;
  /** Of several processes: milliseconds after which the runs of one that is gone are another's. Default 15,000. */
  readonly lease: number;
  /** Of several processes: milliseconds between looks at what the others did, should a hint be lost. Default 5,000. */
  readonly lookEvery: number;
  /** Milliseconds that a request waits for a store that does not answer. Default 5,000. */
  readonly patience: number;
  /** Milliseconds for which a commit that the store fails to take is tried again, before its runs fail. Default 60,000. */
  readonly storeTimeout: number;
  /** Milliseconds that a session without runs is kept after it was last written to. Default 30 days. */
  readonly keepSessions: number;
}

const hour = 3_600_000;

export const defaultLimits: Limits = {
  events: 1_000_000,
  chars: 256 * 1024 * 1024,
  backlog: 256 * 1024,
  running: 10_000,
  queued: 1_000,
  cancelDeadline: 5_000,
  runTime: hour,
  awaitTime: 7 * 24 * hour,
  silence: hour / 6,
  passivateAfter: 60_000,
  attempts: 3,
  keepRuns: 30 * 24 * hour,
  keepKeys: 24 * hour,
  stopTime: 10_000,
  sweepEvery: 1_000,
  lease: 15_000,
  lookEvery: 5_000,
  patience: 5_000,
  storeTimeout: 60_000,
  keepSessions: 30 * 24 * hour,
};
