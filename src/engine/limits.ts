/** What a run may take; a run that goes over ends `failed`, the server goes on. */
export interface Limits {
  /** Events that the agent may cause in one run. Default 1,000,000. */
  readonly events: number;
  /** Characters of JSON in those events. Default 256 Mi. */
  readonly chars: number;
  /** Characters waiting for the store before an agent's iterable is held back. Default 256 Ki. */
  readonly backlog: number;
  /** Milliseconds that a cancelled agent has to stop in. Default 5,000. */
  readonly cancelDeadline: number;
}

export const defaultLimits: Limits = {
  events: 1_000_000,
  chars: 256 * 1024 * 1024,
  backlog: 256 * 1024,
  cancelDeadline: 5_000,
};
