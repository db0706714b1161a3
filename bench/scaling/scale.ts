/** How much of each workload is measured. */
export interface Scale {
  readonly rounds: number;
  /** Runs whose start is timed. */
  readonly starts: number;
  /** Tokens of a stream. */
  readonly tokens: number;
  /** Sync runs in a round. */
  readonly runs: number;
  /** Nodes that are killed, one after the other. */
  readonly failovers: number;
}

export const whole: Scale = { rounds: 3, starts: 300, tokens: 1_500, runs: 960, failovers: 20 };

/** A check in half a minute that the bench works; the figures mean little. */
export const quick: Scale = { rounds: 1, starts: 40, tokens: 200, runs: 240, failovers: 1 };
