import { fail } from '../../core/errors.ts';
import { expectedTime } from '../../core/messages.ts';
import type { StatusPosition } from '../../core/ports/run-lists.ts';
import type { Access } from '../../engine/access.ts';
import { sessionIdFor } from '../../engine/ids.ts';
import { utcOf, uuidPattern } from '../../schema/formats.ts';
import type { RunStatus } from '../../schema/run.ts';
import type { ListTasksRequest } from './request.ts';
import { readListed } from './stored-tasks.ts';
import type { Task } from './task-object.ts';

const defaultPageSize = 50;

/** The statuses of runs that are in a state; none for states that runs do not have. */
const statusesOf: Readonly<Record<string, readonly RunStatus[]>> = {
  TASK_STATE_SUBMITTED: ['created'],
  TASK_STATE_WORKING: ['in-progress', 'cancelling'],
  TASK_STATE_INPUT_REQUIRED: ['awaiting'],
  TASK_STATE_COMPLETED: ['completed'],
  TASK_STATE_FAILED: ['failed'],
  TASK_STATE_CANCELED: ['cancelled'],
  TASK_STATE_REJECTED: [],
  TASK_STATE_AUTH_REQUIRED: [],
};

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
  const statuses = status === undefined ? undefined : statusesOf[status];
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
