import type { RunStatus } from '../../schema/run.ts';
import type { RunRow } from './run-store.ts';

export interface RunFilter {
  readonly agent_name?: string;
  readonly session_id?: string;
  readonly status?: RunStatus;
  readonly owner?: string;
  /** Only parked runs. */
  readonly parked?: true;
  /** Only runs of this part of the store: see `Partitions`. A store without parts ignores it. */
  readonly part?: number;
}

/** Some runs, for lists by the time of their status. */
export interface StatusFilter {
  /** Default: all that have runs. */
  readonly agent_names?: readonly string[] | undefined;
  readonly session_id?: string;
  readonly owner?: string;
  /** Default: all. */
  readonly statuses?: readonly RunStatus[];
  /** Runs that got their status at this time or later. */
  readonly since?: string;
  /** As in `RunFilter`. */
  readonly part?: number;
}

/** Where a page of a list by the time of the status ends. */
export type StatusPosition = Pick<RunRow, 'status_at' | 'run_id'>;

/** The runs that have a status which is not final. */
export interface OpenRuns {
  readonly status: RunStatus;
  readonly count: number;
  /** The id of the first one; ids carry the time at which they were made. */
  readonly oldest: string;
}

/** Sums over the ended runs of an agent, without cancelled ones. */
export interface AgentFigures {
  readonly agent_name: string;
  readonly completed: number;
  readonly failed: number;
  readonly tokens: number;
  readonly seconds: number;
}

/**
 * The part of a store that lists and counts runs. Of a store with `Partitions`, the lists of all runs reject where a part
 * does not answer, and `due`, `openRuns` and `figures` leave that part out.
 */
export interface RunLists {
  /** Runs, newest first; only those made before the run `before`, if it is given. */
  runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]>;
  /**
   * Runs by the time of their status, the newest first and then by id; only those after a position, if it is given. With
   * a session, the cost grows with the runs of the session. Otherwise a page costs some rows for each agent and status,
   * and at most a look at each run that is not final.
   */
  runsByStatusTime(filter: StatusFilter, after: StatusPosition | undefined, limit: number): Promise<RunRow[]>;
  /** The number of runs that match. It may cost as much as to read an index of them. */
  countRuns(filter: StatusFilter): Promise<number>;
  /** Runs that are not final, oldest first; only those made after the run `after`, of one session or of all. */
  unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]>;
  /** Runs whose `due` has passed. */
  due(now: string, limit: number): Promise<RunRow[]>;
  /** The number of runs of a session that are not final. */
  count(session_id: string): Promise<number>;
  /** The runs that are not final, of one owner or of all, by status; a status without runs is left out. */
  openRuns(owner?: string): Promise<OpenRuns[]>;
  /** The figures of agents: over all runs, or over those of one owner. */
  figures(agent_names: readonly string[], owner?: string): Promise<AgentFigures[]>;
}
