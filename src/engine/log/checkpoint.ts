import type { RunRow } from '../../core/ports/run-store.ts';
import type { Resource } from '../../core/ports/session-store.ts';
import type { Store } from '../../core/ports/store.ts';
import type { MessagePart } from '../../schema/message.ts';
import type { Run } from '../../schema/run.ts';

/** Events from which on a run gets checkpoints. To fold fewer takes a few milliseconds. */
const longLog = 1_000;
/** Characters of output up to which it does: to write and parse as many as JSON takes some 20 ms, in one turn. */
const maxChars = 4 * 1024 * 1024;

/** The Run of a stored log as of an event, from which a later one is folded; as of event 0, nothing is known. */
export interface KnownRun {
  readonly run: Run;
  readonly last: number;
}

/** The id of a run's checkpoint: the run's own, as a UUID of version 8. */
const idOf = (run_id: string): string => `${run_id.slice(0, 14)}8${run_id.slice(15)}`;

/** Whether a resource is a checkpoint, which is no resource for clients. */
export const isCheckpoint = ({ resource_id, run_id }: Resource): boolean =>
  run_id !== null && resource_id === idOf(run_id);

/**
 * The checkpoint of a run: its Run as of the last event. It is stored beside the log when the run comes to rest, so that
 * readers do not fold the log from its first event. A log only grows, so a checkpoint is never wrong, only old. A new
 * checkpoint replaces the earlier one, and is deleted with the run. Undefined for a short log, and for a long output.
 */
export function checkpointOf({ run_id, session_id, last }: RunRow, run: Run): Resource | undefined {
  if (last < longLog || charsOf(run) > maxChars) return undefined;
  const known: KnownRun = { last, run };
  const body = JSON.stringify(known);
  return { resource_id: idOf(run_id), session_id, run_id, content_type: 'application/json', body };
}

/** The Run of a run's checkpoint; undefined where there is none that can be read. @throws any error of the store */
export async function readCheckpoint(store: Store, { run_id, last }: RunRow): Promise<KnownRun | undefined> {
  if (last < longLog) return undefined;
  const [checkpoint] = await store.resources([idOf(run_id)]);
  if (checkpoint === undefined) return undefined;
  try {
    return JSON.parse(checkpoint.body);
  } catch {
    return undefined;
  }
}

/** About the number of characters of a Run's output. */
const charsOf = ({ output }: Run): number =>
  output.reduce((sum, { parts }) => sum + parts.reduce((chars, part) => chars + charsOfPart(part), 0), 0);

const charsOfPart = ({ content, name }: MessagePart): number => 100 + (content?.length ?? 0) + (name?.length ?? 0);
