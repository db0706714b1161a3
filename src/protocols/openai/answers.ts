import { RivuletError } from '../../core/errors.ts';
import type { Access } from '../../engine/access.ts';
import type { AcceptedRun, RunOptions } from '../../engine/runs/create.ts';
import { atPlace } from '../request-errors.ts';
import { questionAt } from '../turns.ts';
import { placeOfCall } from './ids.ts';
import type { CallAnswer } from './transcript.ts';

/** Errors that mean that the run does not wait for this answer (any more), or is not here. */
const notAsked = new Set(['not_awaiting', 'question_mismatch', 'run_unknown', 'log_removed', 'cursor_invalid']);

/**
 * Resumes the run of an agent whose question a call stands for. Undefined where there is none that waits for it: the call
 * is of a history, of another server, or of the agent that the client has talked to before.
 * @throws RivuletError as `Access.resume`
 */
export async function answerCall(
  own: Access,
  model: string,
  { call_id, parts, path }: CallAnswer,
  options: RunOptions,
): Promise<AcceptedRun | undefined> {
  const place = placeOfCall(call_id);
  if (place === undefined) return undefined;
  try {
    if ((await own.check(place.run_id)) !== model) return undefined;
    const id = (await questionAt(own, place.run_id, place.event))?.id;
    if (id === undefined) return undefined;
    return await own.resume(place.run_id, { id, message: { role: 'user', parts } }, options);
  } catch (error) {
    if (error instanceof RivuletError && notAsked.has(error.kind)) return undefined;
    throw atPlace(error, path);
  }
}
