import { fail } from '../../core/errors.ts';
import type { Access } from '../../engine/access.ts';
import type { RunDetails, RunSummary } from '../../schema/run.ts';
import { messageIdOf } from './ui-parts.ts';

const pageSize = 100;
/** Runs that one request may remove. */
const maxRemoved = 1_000;

interface Kept {
  readonly id?: string;
  readonly role: string;
}

/**
 * Lets a session follow its chat, of which a person has cut off the end: removes the runs that came after the last
 * message that the chat has kept. The id of an assistant's message is that of its run. Runs that were made after `before`,
 * an id of this moment, stay: a repeated request would remove its own run. `cancels`: those that are not final are cancelled first.
 * @throws RivuletError `not_final`, before anything is removed; `validation_failed` where the list is not the whole chat
 */
export async function followChat(
  own: Access,
  session_id: string,
  kept: readonly Kept[],
  before: string,
  cancels: boolean,
): Promise<void> {
  const assistants = new Set(
    kept.flatMap(({ id, role }) => (role === 'assistant' && id !== undefined ? [id.toLowerCase()] : [])),
  );
  const dropped: string[] = [];
  for await (const { run_id } of newestFirst(own, session_id, before)) {
    if (assistants.has(run_id)) return own.drop(dropped, cancels);
    dropped.push(run_id);
    if (dropped.length > maxRemoved) throw fail('validation_failed', 'messages', `drop at most ${maxRemoved} answers`);
  }
  const oldest = dropped.at(-1);
  // All runs of the session: only a list that has its first message may say so, and not the last part of a longer one.
  if (oldest !== undefined && !(await beganWith(own, oldest, kept))) {
    throw fail('validation_failed', 'messages', 'expected all messages of the chat, to answer an earlier one anew');
  }
  await own.drop(dropped, cancels);
}

async function* newestFirst(own: Access, session_id: string, before: string): AsyncGenerator<RunSummary> {
  for (let cursor: string | undefined = before; cursor !== undefined; ) {
    const page = await own.runs({ session_id }, cursor, pageSize);
    for (const run of page.runs) yield JSON.parse(run);
    cursor = page.next;
  }
}

/** Whether the list has a message of the input of a run. */
async function beganWith(own: Access, run_id: string, kept: readonly Kept[]): Promise<boolean> {
  const { input }: RunDetails = JSON.parse(await own.details(run_id));
  const ids = new Set(kept.map(({ id }) => id));
  return input.some((message, index) => ids.has(messageIdOf(run_id, message, index)));
}
