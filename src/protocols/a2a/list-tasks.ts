import { fail } from '../../core/errors.ts';
import { expectedTime } from '../../core/messages.ts';
import type { StatusPosition } from '../../core/ports/run-lists.ts';
import type { Access } from '../../engine/access.ts';
import { sessionIdFor } from '../../engine/ids.ts';
import { utcOf, uuidPattern } from '../../schema/formats.ts';
import { runStatuses } from '../../schema/statuses.ts';
import type { ListTasksRequest } from './request.ts';
import { readListed } from './stored-tasks.ts';
import { stateOf, type Task } from './task-object.ts';

const defaultPageSize = 50;

export interface TaskPage extends Record<string, unknown> {
  readonly tasks: readonly Task[];
  readonly nextPageToken: string;
  readonly pageSize: number;
  readonly totalSize: number;
}

/** The caller's tasks, those whose status has changed last first; of an agent, or of all. */
export async function listTasks(
  own: Access,
  agent: string | undefined,
  { contextId = '', status, pageSize = defaultPageSize, pageToken = '', ...asked }: ListTasksRequest,
): Promise<TaskPage> {
  const since = sinceOf(asked.statusTimestampAfter);
  const after = positionIn(pageToken);
  const statuses = status === undefined ? undefined : runStatuses.filter((one) => stateOf[one] === status);
  // Runs never have some of the states, such as TASK_STATE_REJECTED.
  if (statuses?.length === 0) return { tasks: [], nextPageToken: '', pageSize, totalSize: 0 };
  const { runs, total, next } = await own.runsByStatusTime(
    { agent_name: agent, ...(contextId !== '' && { session_id: sessionIdFor(contextId) }), statuses, since },
    after,
    pageSize,
  );
  const extent = { includeArtifacts: asked.includeArtifacts ?? false, historyLength: asked.historyLength };
  const listed = runs.map((run): StatusPosition => JSON.parse(run));
  const { found, last = next } = await own.page(listed, ({ run_id }) => readListed(own, run_id, extent));
  const nextPageToken = last === undefined ? '' : tokenOf(last);
  return { tasks: found.filter((task) => task !== undefined), nextPageToken, pageSize, totalSize: total };
}

function sinceOf(time = ''): string | undefined {
  if (time === '') return undefined;
  const utc = utcOf(time);
  if (utc === undefined) throw fail('validation_failed', 'statusTimestampAfter', expectedTime(time));
  return new Date(utc).toISOString();
}

const tokenOf = ({ status_at, run_id }: StatusPosition): string =>
  Buffer.from(`${status_at} ${run_id}`).toString('base64url');

const position = new RegExp(`^([\\dT:.Z-]{20,35}) (${uuidPattern})$`);

function positionIn(token: string): StatusPosition | undefined {
  if (token === '') return undefined;
  const [, status_at, run_id] = position.exec(Buffer.from(token, 'base64url').toString()) ?? [];
  if (status_at !== undefined && run_id !== undefined) return { status_at, run_id };
  throw fail('validation_failed', 'pageToken', 'expected the nextPageToken of the page before');
}
