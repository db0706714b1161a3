import type { StatusFilter, StatusPosition } from '../../core/ports/run-lists.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import { summaryOf } from '../log/stored-run.ts';
import { type VisibleRuns, visibleRuns } from '../store/visible-runs.ts';
import type { RunServices } from './run-services.ts';

/** Characters of JSON after which a page of runs ends: the questions of runs may be long. */
const maxPageChars = 1024 * 1024;

/** As `StatusFilter`, with one agent or any that the caller may see. */
export type AgentStatusFilter = Omit<StatusFilter, 'agent_names'> & Pick<VisibleRuns, 'agent_name' | 'isVisible'>;

/** Runs as JSON, without their output, and the cursor of the next page, if there is one. */
export interface RunPage {
  readonly runs: string[];
  readonly next?: string;
}

/** A page of runs by the time of their status. */
export interface RunsByStatusTime {
  readonly runs: string[];
  readonly total: number;
  /** Where the next page begins; absent on the last one. */
  readonly next?: StatusPosition;
}

/** Lists runs, newest first. Each run takes at most one read of one event, however long its log is. */
export async function listRuns(
  { store }: RunServices,
  filter: VisibleRuns,
  before: string | undefined,
  limit: number,
): Promise<RunPage> {
  const { items, readTo } = await visibleRuns(store, filter, before, limit + 1);
  const { runs, last = readTo } = await pageOf(store, items, limit, () => ({}));
  return { runs, ...(last && { next: last.run_id }) };
}

/**
 * Lists runs of an agent, or of all agents that there are, by the time of their status, newest first: as `listRuns`, with
 * `status_at`. `total` counts all runs that match, and costs as much as to read an index of them.
 */
export async function listByStatusTime(
  { store, executions }: RunServices,
  { agent_name, isVisible = () => true, ...rest }: AgentStatusFilter,
  after: StatusPosition | undefined,
  limit: number,
): Promise<RunsByStatusTime> {
  const names =
    agent_name === undefined ? executions.registry.list().map(({ manifest }) => manifest.name) : [agent_name];
  const filter: StatusFilter = { ...rest, agent_names: names.filter(isVisible) };
  const [rows, total] = await Promise.all([store.runsByStatusTime(filter, after, limit + 1), store.countRuns(filter)]);
  const { runs, last } = await pageOf(store, rows, limit, ({ status_at }) => ({ status_at }));
  return { runs, total, ...(last && { next: { status_at: last.status_at, run_id: last.run_id } }) };
}

/** The first rows as JSON, and the last of them, where there are more. A page ends early with the run that makes it large. */
async function pageOf(
  store: Store,
  rows: readonly RunRow[],
  limit: number,
  more: (row: RunRow) => object,
): Promise<{ runs: string[]; last: RunRow | undefined }> {
  const runs: string[] = [];
  let chars = 0;
  for (const row of rows.slice(0, limit)) {
    const run = JSON.stringify({ ...(await summaryOf(store, row)), ...more(row) });
    runs.push(run);
    chars += run.length;
    if (chars > maxPageChars) break;
  }
  return { runs, last: runs.length < rows.length ? rows[runs.length - 1] : undefined };
}
