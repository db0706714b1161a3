import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ErrorName, fail, RivuletError } from '../../core/errors.ts';
import { fold } from '../../core/fold.ts';
import type { AgentRequest } from '../../core/request.ts';
import type { Access } from '../../engine/access.ts';
import type { Event } from '../../schema/event.ts';
import type { Message } from '../../schema/message.ts';
import type { Run, RunDetails } from '../../schema/run.ts';
import { runIdIn } from '../run-place.ts';
import { type Conversation, type Task, type TaskExtent, taskOf } from './task-object.ts';

/** What a task has beside its log. */
export interface BegunTask {
  readonly task: Conversation;
  /** The messages that the run was made with. */
  readonly input: readonly Message[];
}

const unreadable: ReadonlySet<ErrorName> = new Set(['run_unknown', 'log_removed', 'log_damaged']);

/**
 * The id of a task that the caller may see, of an agent or of any.
 * @throws RivuletError `run_unknown`, `log_removed`
 */
export async function findTask(own: Access, agent: string | undefined, id: string): Promise<string> {
  const run_id = runIdIn(id);
  const found = await own.check(run_id);
  if (agent !== undefined && found !== agent) throw fail('run_unknown', run_id);
  return run_id;
}

/** The task as it is now. @throws RivuletError `run_unknown`, `log_removed` */
export async function readTask(own: Access, run_id: string, extent: TaskExtent = {}): Promise<Task> {
  const { task, run, input } = await begunTask(own, run_id);
  return taskOf(task, run, input, extent);
}

/** The task of a list; undefined where it was deleted meanwhile, or where its log cannot be read: an error would hide all others. */
export async function readListed(own: Access, run_id: string, extent: TaskExtent): Promise<Task | undefined> {
  try {
    return await readTask(own, run_id, extent);
  } catch (error) {
    if (error instanceof RivuletError && unreadable.has(error.kind)) return undefined;
    throw error;
  }
}

/** The caller has checked that it may see the run. @throws as `readTask` */
export async function begunTask(own: Access, run_id: string): Promise<BegunTask & { readonly run: Run }> {
  const { input, ...run }: RunDetails = JSON.parse(await own.details(run_id));
  return { task: conversationOf(run, await own.request(run_id)), run, input };
}

/** A client calls the conversation as it likes; runs of other protocols have the id of their session. */
export const conversationOf = (
  { run_id, session_id }: Run,
  { protocol, conversation }: AgentRequest,
): Conversation => ({
  taskId: run_id,
  contextId: (protocol === 'a2a' ? conversation : undefined) ?? session_id ?? run_id,
});

/** Events of a log that are folded in one turn of the event loop: 2 to 5 ms. */
const eventsPerTurn = 1_000;

/**
 * Folds a log up to an event, in time that grows with the number of events.
 * @throws RivuletError `cursor_invalid` where it ends before, and as `readTask`
 */
export async function runAt(own: Access, run_id: string, n: number): Promise<Run> {
  let run: Run | undefined;
  for await (const { first, lines } of await own.stream(run_id, { seen: n, until: 'now' })) {
    for (const [index, line] of lines.entries()) {
      const event: Event = JSON.parse(line);
      if (run !== undefined) run = fold(run, event);
      else if ('run' in event) run = event.run;
      if (first + index === n && run !== undefined) return run;
      if ((first + index) % eventsPerTurn === 0) await nextTurn();
    }
  }
  throw fail('cursor_invalid', 'the position', String(n));
}
