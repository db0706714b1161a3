/** A process that executes runs of a store. No other process takes a run from it while its lease lasts. */
export interface LeaseHolder {
  /** The name of this process among the nodes of a shared store: see `RunClaims`. */
  readonly node: string | undefined;
  /**
   * Since when this process has had a lease on a run, or would have if the run were its own: milliseconds of
   * `performance.now`. Undefined while the lease may have ended. A lease that has ended begins anew, because other nodes may
   * have taken runs over meanwhile.
   */
  leasedSince(run_id: string): number | undefined;
  /** Resolves when the lease is renewed next. */
  whenRenewed(): Promise<void>;
}
