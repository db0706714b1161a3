import { needsAgent, needsExecution, type RunClaims } from '../../src/core/ports/run-claims.ts';
import type { RunRow, Write } from '../../src/core/ports/run-store.ts';
import { isFinal } from '../../src/core/run-state.ts';

/** Which node has each run, of a store in memory that several nodes of a test share. */
export class MemoryClaims implements RunClaims {
  readonly #rows: () => Iterable<RunRow>;
  readonly #now: () => number;
  readonly #leases = new Map<string, number>();
  readonly #nodes = new Map<string, string>();

  /** `rows`: the runs of the store. `now`: milliseconds. */
  constructor(rows: () => Iterable<RunRow>, now: () => number) {
    this.#rows = rows;
    this.#now = now;
  }

  /** The node of a run. */
  nodeOf(run_id: string): string | undefined {
    return this.#nodes.get(run_id);
  }

  /** The store has taken a write. */
  onTaken({ row, node, grown }: Write): void {
    if (grown === true) return;
    if (isFinal(row.status) || node === null) this.#nodes.delete(row.run_id);
    else if (node !== undefined) this.#nodes.set(row.run_id, node);
  }

  async renewLease(node: string, milliseconds: number): Promise<boolean> {
    this.#leases.set(node, this.#now() + milliseconds);
    return false;
  }

  async endLease(node: string): Promise<void> {
    this.#leases.set(node, 0);
  }

  async claimRuns(node: string, agents: readonly string[], limit: number): Promise<string[]> {
    const isWaiting = (row: RunRow): boolean => {
      const holder = this.#nodes.get(row.run_id);
      return holder === undefined
        ? needsExecution(row)
        : holder !== node && !isFinal(row.status) && this.#isDead(holder);
    };
    const found = [...this.#rows()]
      .filter((row) => isWaiting(row) && (!needsAgent(row) || agents.includes(row.agent_name)))
      .map(({ run_id }) => run_id)
      .sort()
      .slice(0, limit);
    for (const run_id of found) this.#nodes.set(run_id, node);
    return found;
  }

  async takeRuns(node: string, run_ids: readonly string[]): Promise<string[]> {
    const open = new Set([...this.#rows()].filter(({ status }) => !isFinal(status)).map(({ run_id }) => run_id));
    const taken = run_ids.filter((run_id) => {
      const holder = this.#nodes.get(run_id);
      return open.has(run_id) && (holder === undefined || holder === node || this.#isDead(holder));
    });
    for (const run_id of taken) this.#nodes.set(run_id, node);
    return taken;
  }

  async heldRuns(node: string, after: string, limit: number): Promise<string[]> {
    const held = [...this.#nodes].flatMap(([run_id, holder]) => (holder === node && run_id > after ? [run_id] : []));
    return held.sort().slice(0, limit);
  }

  async freeRuns(node: string, run_ids: readonly string[]): Promise<void> {
    for (const run_id of run_ids) if (this.#nodes.get(run_id) === node) this.#nodes.delete(run_id);
  }

  #isDead(node: string): boolean {
    return (this.#leases.get(node) ?? 0) <= this.#now();
  }
}
