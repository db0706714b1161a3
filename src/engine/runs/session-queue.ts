import type { IfBusy } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import { Roster } from '../../core/roster.ts';
import type { RunRow, Store } from '../../core/store.ts';

interface Queued {
  readonly run_id: string;
  /** The runs of the session that were there before it and are not over. */
  readonly before: Set<string>;
  readonly begin: () => void;
}

const page = 1000;
const nobody: ReadonlySet<string> = new Set();

/** Whose turn it is where several runs of one session meet. */
export class SessionTurns {
  readonly #store: Store;
  readonly #cancel: (run_id: string) => Promise<unknown>;
  /** Runs that are here or about to be, in the order in which they came. */
  readonly #here = new Roster<Set<string>>();
  readonly #queued = new Map<string, Queued[]>();
  /** The sessions of the runs that queued ones wait for. */
  readonly #awaited = new Map<string, string>();

  constructor(store: Store, cancel: (run_id: string) => Promise<unknown>) {
    this.#store = store;
    this.#cancel = cancel;
  }

  /**
   * A new run comes; answers the runs that it has to wait for.
   * @throws RivuletError `session_busy`
   */
  async come(session_id: string, run_id: string, if_busy: IfBusy): Promise<ReadonlySet<string>> {
    const here = this.#here.get(session_id) ?? new Set();
    if (if_busy === 'parallel') {
      this.#here.set(session_id, here.add(run_id));
      return nobody;
    }
    // Before anything is awaited: of two that come at once, the second has to see the first.
    const before = new Set(here);
    this.#here.set(session_id, here.add(run_id));
    const kept = await this.#unfinished(session_id).catch((error: unknown) => {
      this.#go(session_id, run_id);
      throw error;
    });
    for (const row of kept) if (!here.has(row.run_id)) before.add(row.run_id);
    const [first] = before;
    if (first === undefined) return before;
    if (if_busy === 'reject') {
      this.#go(session_id, run_id);
      throw fail('session_busy', session_id, first);
    }
    // One that has ended meanwhile needs no cancelling.
    if (if_busy === 'interrupt') for (const other of before) await this.#cancel(other).catch(() => undefined);
    return before;
  }

  /** Lets a run that is in the store wait until those before it are over; then it may begin. */
  wait({ session_id, run_id }: RunRow, others: ReadonlySet<string>, begin: () => void): void {
    const before = new Set(others);
    this.#queued.set(session_id, [...(this.#queued.get(session_id) ?? []), { run_id, before, begin }]);
    for (const other of before) this.#awaited.set(other, session_id);
    // Where the store does not answer, the end of the run before it is what it waits for.
    void this.#recheck(session_id, before).catch(() => undefined);
  }

  /** Whether a run waits here for its turn. */
  awaits({ session_id, run_id }: RunRow): boolean {
    return this.#queued.get(session_id)?.some((one) => one.run_id === run_id) === true;
  }

  /** A run leaves this process's hands unfinished; from now on the store tells that it is there. */
  left({ session_id, run_id }: Pick<RunRow, 'session_id' | 'run_id'>): void {
    this.#go(session_id, run_id);
  }

  /** A run that another process had is over. */
  ended(run_id: string): void {
    const session_id = this.#awaited.get(run_id);
    if (session_id !== undefined) this.over({ session_id, run_id });
  }

  /** A run is over: those that waited for it alone begin. */
  over({ session_id, run_id }: Pick<RunRow, 'session_id' | 'run_id'>): void {
    this.#go(session_id, run_id);
    this.#awaited.delete(run_id);
    const queued = this.#queued.get(session_id);
    if (queued === undefined) return;
    for (const one of queued) one.before.delete(run_id);
    const left = queued.filter((one) => one.run_id !== run_id);
    const rest = left.filter(({ before }) => before.size > 0);
    if (rest.length > 0) this.#queued.set(session_id, rest);
    else this.#queued.delete(session_id);
    for (const { before, begin } of left) if (before.size === 0) begin();
  }

  /** Hints may have been lost: asks the store whether what others wait for is over. */
  async recheck(): Promise<void> {
    for (const [session_id, queued] of [...this.#queued]) {
      await this.#recheck(session_id, new Set(queued.flatMap(({ before }) => [...before])));
    }
  }

  #go(session_id: string, run_id: string): void {
    const here = this.#here.get(session_id);
    here?.delete(run_id);
    if (here?.size === 0) this.#here.delete(session_id);
  }

  // Those before it may have ended while it was being written down.
  async #recheck(session_id: string, before: ReadonlySet<string>): Promise<void> {
    const still = new Set((await this.#unfinished(session_id)).map(({ run_id }) => run_id));
    const here = this.#here.get(session_id);
    for (const run_id of [...before]) {
      if (!still.has(run_id) && !here?.has(run_id)) this.over({ session_id, run_id });
    }
    if (before.size === 0) this.over({ session_id, run_id: '' });
  }

  async #unfinished(session_id: string): Promise<RunRow[]> {
    const rows: RunRow[] = [];
    for (let after = ''; ; after = rows.at(-1)?.run_id ?? '') {
      const found = await this.#store.unfinished(session_id, after, page);
      rows.push(...found);
      if (found.length < page) return rows;
    }
  }
}
