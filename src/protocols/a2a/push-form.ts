import { sessionIdOf } from '../../core/principal.ts';
import type { PushForm, ReportedChange } from '../../core/push-targets.ts';
import type { RunStatus } from '../../schema/run.ts';
import { type Conversation, stateOf, statusOf, type TaskStatus } from './task-object.ts';

export const pushFormName = 'a2a';

/** Push notifications: the frame of the task's stream for each change of its status. */
export const pushForm: PushForm = {
  bodyOf(change, { conversation }) {
    const { run_id, session_id } = change.row;
    const task = { taskId: run_id, contextId: conversation ?? sessionIdOf(session_id) };
    return JSON.stringify({ statusUpdate: { ...task, status: statusIn(change, task) } });
  },
  headersOf: ({ token, authentication }) => ({
    ...(token !== undefined && { 'x-a2a-notification-token': token }),
    ...(authentication !== undefined && {
      authorization: [authentication.scheme, authentication.credentials].filter(Boolean).join(' '),
    }),
  }),
};

/**
 * Characters of an event that is read for its status. The last event has the whole output as well, and to parse a large one
 * would delay the commits of other runs: such a notification says the state alone, and its receiver reads the task.
 */
const maxChars = 64 * 1024;

/** The status, with the question or the error of the run. */
function statusIn({ line, now, status }: ReportedChange, task: Conversation): TaskStatus {
  if (line.length <= maxChars) return statusOf(task, JSON.parse(line).run);
  return { state: isStatus(status) ? stateOf[status] : 'TASK_STATE_UNSPECIFIED', timestamp: now };
}

const isStatus = (status: string): status is RunStatus => Object.hasOwn(stateOf, status);
