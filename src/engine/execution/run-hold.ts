import type { LeaseHolder } from '../../core/ports/lease.ts';
import type { RunLog } from '../log/run-log.ts';

/**
 * Knows whether this process still has a durable run that it executes. The process takes the run under a lease. Once that lease
 * has ended, any other node may take the run, and the agent has to wait here until this process has taken the run again.
 */
export class RunHold {
  readonly #log: RunLog;
  readonly #dispatcher: LeaseHolder;
  /** Since when this process has had the lease under which it has taken the run. */
  #heldSince: number | undefined;
  /** The lease under which a write takes the run once more, which may be under way. */
  #takenAgainSince: number | undefined;

  constructor(log: RunLog, dispatcher: LeaseHolder) {
    this.#log = log;
    this.#dispatcher = dispatcher;
    this.#heldSince = this.#leasedSince;
  }

  get #leasedSince(): number | undefined {
    return this.#dispatcher.leasedSince(this.#log.run_id);
  }

  /** Whether no other node can have taken the run: the lease has not ended since this process took the run. */
  get holds(): boolean {
    const since = this.#leasedSince;
    return since !== undefined && since === this.#heldSince;
  }

  /**
   * Resolves when everything so far is durable, and the run is held. Where the lease has ended, the process takes the run once
   * more, as soon as it has a lease. Never resolves where another node has taken the run over.
   */
  async whenHeld(): Promise<void> {
    for (;;) {
      const since = this.#leasedSince;
      if (since === undefined) {
        await this.#dispatcher.whenRenewed();
      } else {
        if (since !== this.#heldSince && since !== this.#takenAgainSince) this.#log.takeAgain(this.#dispatcher.node);
        this.#takenAgainSince = since;
        // The log reports its failure to the engine, which drops the execution.
        await this.#log.flushed().catch(() => new Promise<never>(() => undefined));
        // The process may have been paused for longer than its lease meanwhile.
        if (since === this.#leasedSince) {
          this.#heldSince = since;
          return;
        }
      }
    }
  }
}
