import type { Run } from '../../../src/index.ts';
import type { Order } from './agents.ts';

/** Something that must not be. */
export class Violation extends Error {}

/** A run that the server has acknowledged. */
export interface Known {
  readonly run_id: string;
  readonly session_id: string;
  readonly order: Order;
  /** Every event that some reader saw: its id and its bytes. */
  readonly seen: Map<number, string>;
  /** Up to which event all of them were seen. */
  reach: number;
  /** The last of them that carries the Run. */
  latest: { readonly id: number; readonly run: Run } | undefined;
  /** The Runs that were answered as JSON when it had settled. */
  readonly answers: string[];
  /** A cancel was sent, and maybe answered. */
  cancel: 'none' | 'sent' | 'taken';
}

/** What the clients know: what the server has told them, it may never take back. */
export class Ledger {
  readonly runs = new Map<string, Known>();
  readonly #list: Known[] = [];
  readonly #byKey = new Map<string, string>();
  eventsSeen = 0;
  reconnects = 0;
  requests = 0;
  /** Creations that were cut before they were answered, and not sent again. */
  unanswered = 0;
  resumes = 0;
  cancels = 0;
  audits = 0;

  /** The server has acknowledged a run. */
  acknowledge(run_id: string, session_id: string, order: Order): Known {
    const before = this.#byKey.get(order.key);
    if (before !== undefined && before !== run_id) {
      throw new Violation(`one Idempotency-Key made two runs: ${before} and ${run_id}`);
    }
    const known = this.runs.get(run_id);
    if (known !== undefined) return known;
    const run: Known = {
      run_id,
      session_id,
      order,
      seen: new Map(),
      reach: 0,
      latest: undefined,
      answers: [],
      cancel: 'none',
    };
    this.runs.set(run_id, run);
    this.#byKey.set(order.key, run_id);
    this.#list.push(run);
    return run;
  }

  /** A reader was shown an event. */
  see(known: Known, id: number, line: string): void {
    const { run_id, seen, latest } = known;
    this.eventsSeen += 1;
    const before = seen.get(id);
    if (before !== undefined && before !== line) {
      throw new Violation(`event ${id} of run ${run_id} was ${before} and is now ${line}`);
    }
    seen.set(id, line);
    while (seen.has(known.reach + 1)) known.reach += 1;
    const run = runOf(line);
    if (run !== undefined && id > (latest?.id ?? 0)) known.latest = { id, run };
  }

  /** The runs that were made last, oldest first. */
  recent(count: number): readonly Known[] {
    return this.#list.slice(-count);
  }

  get size(): number {
    return this.#list.length;
  }
}

/** The Run that an event carries, if it carries one. */
const runOf = (line: string): Run | undefined => (line.startsWith('{"type":"run.') ? JSON.parse(line).run : undefined);

export const statusOf = (line: string): Run['status'] => runOf(line)?.status ?? 'in-progress';
export const asks = (line: string): boolean => statusOf(line) === 'awaiting';
export const questionOf = (run: Pick<Run, 'await_request'>): string =>
  run.await_request?.message.parts[0]?.content ?? '';

/** Holds an event of the log to what somebody saw. @throws Violation */
export function compare({ run_id }: Known, id: number, seen: string, logged: object | undefined): void {
  if (JSON.stringify(logged) === JSON.stringify(JSON.parse(seen))) return;
  throw new Violation(`event ${id} of run ${run_id} was seen as ${seen}, and the log has ${JSON.stringify(logged)}`);
}
