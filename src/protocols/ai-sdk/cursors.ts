import { fail, RivuletError } from '../../core/errors.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Access } from '../../engine/access.ts';
import { sessionIdFor } from '../../engine/ids.ts';
import { afterFrame, type Position, type Projection, Projector } from '../../http/sse/projection.ts';
import type { RunSummary } from '../../schema/run.ts';
import { runPlaceIds } from '../run-place.ts';
import { startOf, type Turn } from '../turns.ts';

const turns = runPlaceIds('', '.');

/** The id of a turn for clients that count its chunks. */
export const turnId = ({ run_id, after }: Turn): string => turns.of(run_id, after === 0 ? undefined : after);

/**
 * The turn of an agent that an id names: the one itself, the first of a run, or that of the newest run of a chat. Undefined where there
 * is none.
 */
export async function turnOf(own: Access, agent_name: string, id: string): Promise<Turn | undefined> {
  const named = turns.in(id.toLowerCase());
  if (named !== undefined && (await isOf(own, agent_name, named.run_id))) {
    return { run_id: named.run_id, after: named.n ?? 0 };
  }
  const [newest] = (await own.runs({ session_id: sessionIdFor(id), agent_name }, undefined, 1)).runs;
  if (newest === undefined) return undefined;
  const { run_id }: RunSummary = JSON.parse(newest);
  return { run_id, after: 0 };
}

/**
 * The turn that a page goes on with after the transcript of a chat. Undefined where the run is final, which the transcript
 * has whole, and where a run of another agent follows it: a chat adds a stream to its last message.
 */
export async function openTurnOf(own: Access, agent_name: string, id: string): Promise<Turn | undefined> {
  const turn = await turnOf(own, agent_name, id);
  if (turn === undefined) return undefined;
  const [newest] = (await own.runs({ session_id: sessionIdFor(id) }, undefined, 1)).runs;
  // An id that names a run names no session.
  const { run_id, status }: RunSummary = JSON.parse(newest ?? (await own.details(turn.run_id)));
  return run_id === turn.run_id && !isFinal(status) ? turn : undefined;
}

/** Whether there is a run of the agent with an id. */
async function isOf(own: Access, agent_name: string, run_id: string): Promise<boolean> {
  try {
    return (await own.check(run_id)) === agent_name;
  } catch (error) {
    if (error instanceof RivuletError && error.kind === 'run_unknown') return false;
    throw error;
  }
}

/** The place after the frame with an id, which has the number of its chunk. @throws RivuletError `cursor_invalid` */
export function positionAfter(id: string): Position {
  const place = afterFrame('Last-Event-ID', id);
  if (place.event > 0 && Number.isFinite(place.frames)) return place;
  throw fail('cursor_invalid', 'Last-Event-ID', id.slice(0, 100));
}

/**
 * The place after a number of chunks of a turn, for clients that count them: takes time that grows with the log. The
 * chunk at a clean end counts as well, and has no place of its own.
 * @throws RivuletError `cursor_invalid`
 */
export async function positionAfterChunks<State>(
  own: Access,
  turn: Turn,
  given: string,
  projection: Projection<State>,
): Promise<Position> {
  if (!/^\d{1,15}$/.test(given)) throw fail('cursor_invalid', 'startIndex', given.slice(0, 100));
  let left = Number(given);
  let place = startOf(turn);
  const projector = new Projector(projection);
  for await (const { first, lines } of await own.stream(turn.run_id, {
    seen: place.event,
    until: 'now',
    keeps: false,
  })) {
    for (const [index, line] of lines.entries()) {
      if (left === 0) return place;
      const event = first + index;
      const frames = projector.take(line, event).length;
      if (event <= turn.after || frames === 0) continue;
      if (frames >= left) return { event, frames: left };
      left -= frames;
      place = { event, frames };
    }
  }
  if (left > 1) throw fail('cursor_invalid', 'startIndex', given);
  return place;
}
