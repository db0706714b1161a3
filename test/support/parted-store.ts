import type { RunFilter, StatusFilter, StatusPosition } from '../../src/core/ports/run-lists.ts';
import type { Outcome, RunRow, Write } from '../../src/core/ports/run-store.ts';
import type { Partitions } from '../../src/core/ports/store.ts';
import { SharedStore } from './nodes.ts';

/** A store in memory with two parts, of which one may be away. The last digit of an id decides its part. */
export class PartedStore extends SharedStore {
  away: number | undefined;
  readonly partitions: Partitions = {
    count: 2,
    of: (id) => Number.parseInt(id.slice(-1), 16) % 2,
    answers: (part) => part !== this.away,
  };
  /** The runs that were read. */
  readonly read = new Set<string>();

  override async commit(writes: readonly Write[]): Promise<Outcome[]> {
    for (const { row } of writes) this.#ask(row.run_id);
    return super.commit(writes);
  }

  override async run(run_id: string): Promise<RunRow | undefined> {
    this.read.add(run_id);
    this.#ask(run_id);
    return super.run(run_id);
  }

  override async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    if (session_id !== undefined) this.#ask(session_id);
    const rows = await super.unfinished(session_id, after, limit);
    // Without a session: as claims give the runs of the parts that answer.
    return rows.filter(({ run_id }) => this.partitions.of(run_id) !== this.away);
  }

  override async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    const rows = await super.runs(filter, before, Number.POSITIVE_INFINITY);
    return this.#of(filter, rows).slice(0, limit);
  }

  override async runsByStatusTime(
    filter: StatusFilter,
    after: StatusPosition | undefined,
    limit: number,
  ): Promise<RunRow[]> {
    const rows = await super.runsByStatusTime(filter, after, Number.POSITIVE_INFINITY);
    return this.#of(filter, rows).slice(0, limit);
  }

  #of({ session_id, part }: RunFilter | StatusFilter, rows: readonly RunRow[]): RunRow[] {
    if (part === undefined) this.#ask(session_id);
    else if (part === this.away) throw new Error('connect ECONNREFUSED');
    return rows.filter(({ run_id }) => part === undefined || this.partitions.of(run_id) === part);
  }

  /** @throws Error where the part of an id is away, or any part for no id */
  #ask(id: string | undefined): void {
    const isAway = id === undefined ? this.away !== undefined : this.partitions.of(id) === this.away;
    if (isAway) throw new Error('connect ECONNREFUSED');
  }
}
