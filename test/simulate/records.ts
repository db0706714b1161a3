import type { ClientPlan } from './plan.ts';

/** The requests about one run, and their responses, with which the end of the run is judged. */
export interface RunRecord {
  readonly run_id: string;
  readonly client: ClientPlan;
  /** Whether a response said that the run exists. */
  acknowledged: boolean;
  cancelAsked: boolean;
  /** Not only while the run asks a question. */
  cancelAskedAsWhole: boolean;
  cancelAcknowledged: boolean;
  deleteAsked: boolean;
  /** The questions, by the numbers of their events, for which a cancel was acknowledged. */
  readonly left: number[];
  readonly replies: Reply[];
}

/** A reply that a client sent. */
export interface Reply {
  readonly text: string;
  /** `taken` with the event before it; `refused` where the response was an error. */
  outcome: 'unknown' | 'refused' | { readonly after: number };
}

/** The records of all clients. */
export class Records {
  readonly runs = new Map<string, RunRecord>();
  /** Runs of one Idempotency-Key. */
  readonly byKey = new Map<string, string>();
  /**
   * Clients that may have caused a cancel: their request failed, so that the run may be withdrawn, or interrupts
   * others.
   */
  readonly refusedCreates = new Set<string>();
  readonly interrupted = new Set<string>();
  readonly deletedSessions = new Set<string>();

  of(run_id: string, client: ClientPlan): RunRecord {
    let record = this.runs.get(run_id);
    if (record === undefined) {
      record = {
        run_id,
        client,
        acknowledged: false,
        cancelAsked: false,
        cancelAskedAsWhole: false,
        cancelAcknowledged: false,
        deleteAsked: false,
        left: [],
        replies: [],
      };
      this.runs.set(run_id, record);
    }
    return record;
  }

  isDeleted(record: RunRecord, session_id: string): boolean {
    return record.deleteAsked || this.deletedSessions.has(session_id);
  }
}
