import type { RunRow, StatusFilter, StatusPosition, WrittenRow } from '../../core/store.ts';
import type { RunStatus } from '../../schema/run.ts';
import { compareStatusTimes, matchesStatus, newestStatuses, rangesOf } from '../status-times.ts';
import type { ById } from './by-id.ts';
import { Groups } from './groups.ts';
import { type RunRecord, rowOf, type SessionRecord } from './records.ts';
import type { Sorted } from './sorted.ts';

/**
 * The runs of each agent, and of each agent for each owner, by status and its time. They are kept from the first list on:
 * to keep them costs a run ten microseconds, and few servers are asked for lists.
 */
export class StatusTimes {
  readonly #runs: Pick<ById<RunRecord>, 'values'>;
  #kept: Groups<RunRecord> | undefined;
  /** The agents of these runs, and of some that were deleted. */
  readonly #agents = new Set<string>();

  constructor(runs: Pick<ById<RunRecord>, 'values'>) {
    this.#runs = runs;
  }

  add(run: RunRecord): void {
    if (this.#kept === undefined) return;
    this.#add(this.#kept, run);
  }

  /** Called before the run's row changes. */
  delete(run: RunRecord): void {
    if (this.#kept === undefined) return;
    for (const name of namesOf(run.row)) this.#kept.delete(name, run);
  }

  /** The first call costs time that grows with the number of runs. */
  get #groups(): Groups<RunRecord> {
    if (this.#kept !== undefined) return this.#kept;
    const groups = new Groups<RunRecord>((a, b) => compareStatusTimes(a.row, b.row));
    for (const run of this.#runs.values()) this.#add(groups, run);
    this.#kept = groups;
    return groups;
  }

  #add(groups: Groups<RunRecord>, run: RunRecord): void {
    this.#agents.add(run.row.agent_name);
    for (const name of namesOf(run.row)) groups.add(name, run);
  }

  /** The names of the groups that have the runs of a filter without a session. */
  #groupsOf({ agent_names, owner, statuses }: StatusFilter): [groups: Groups<RunRecord>, names: string[]] {
    const groups = this.#groups;
    const ranges = rangesOf(agent_names ?? [...this.#agents], statuses);
    return [groups, ranges.map(([agent, status]) => nameOf(owner, agent, status))];
  }

  /** `session`: that of the filter, where it names one that there is. */
  page(
    filter: StatusFilter,
    session: SessionRecord | undefined,
    after: StatusPosition | undefined,
    limit: number,
  ): RunRow[] {
    if (filter.session_id !== undefined) return newestStatuses(ofSession(session, filter), after, limit);
    const found: RunRow[] = [];
    const [groups, names] = this.#groupsOf(filter);
    for (const name of names) {
      let left = limit;
      for (const row of newest(groups.get(name), filter, after)) {
        found.push(row);
        left -= 1;
        if (left === 0) break;
      }
    }
    return newestStatuses(found, after, limit);
  }

  /** `removed`: sessions whose runs are still to be deleted. */
  count(filter: StatusFilter, session: SessionRecord | undefined, removed: readonly SessionRecord[]): number {
    if (filter.session_id !== undefined) return ofSession(session, filter).length;
    const { since = '' } = filter;
    const [groups, names] = this.#groupsOf(filter);
    const countOf = (name: string): number => groups.get(name)?.countFrom(({ row }) => row.status_at >= since) ?? 0;
    const all = names.reduce((sum, name) => sum + countOf(name), 0);
    return removed.reduce((sum, one) => sum - ofSession(one, filter).length, all);
  }
}

function* newest(
  group: Sorted<RunRecord> | undefined,
  { since = '' }: StatusFilter,
  after: StatusPosition | undefined,
): Generator<RunRow, void, undefined> {
  const isDone = ({ row }: RunRecord): boolean => after !== undefined && compareStatusTimes(row, after) >= 0;
  for (const run of group?.descending(isDone) ?? []) {
    if (run.row.status_at < since) return;
    if (!run.session.removed) yield rowOf(run);
  }
}

/** The runs of a session, which has few. */
const ofSession = (session: SessionRecord | undefined, filter: StatusFilter): RunRow[] =>
  Array.from(session?.runs.ascending() ?? [], rowOf).filter((row) => matchesStatus(row, filter));

/** Agents have no spaces, and neither have owners. */
const nameOf = (owner: string | undefined, agent: string, status: RunStatus): string =>
  owner === undefined ? `${agent} ${status}` : `${owner} ${agent} ${status}`;

const namesOf = ({ owner, agent_name, status }: WrittenRow): string[] => {
  const ofAgent = nameOf(undefined, agent_name, status);
  return owner === null ? [ofAgent] : [ofAgent, nameOf(owner, agent_name, status)];
};
