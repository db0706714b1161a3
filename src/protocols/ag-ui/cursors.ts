import { fail } from '../../core/errors.ts';
import { after, type Position } from '../../http/sse/projection.ts';
import type { Bounds, Outline } from '../turns.ts';

// A run of a client is a turn of a run here. It ends where the run settles.

/** The place before the last frame of an event. */
const beforeLast = (event: number): Position => ({ event, frames: -1 });

/**
 * Where a reader of a turn goes on. One that has its end gets the last frame again: the clients take a stream without
 * one for a broken one.
 * @throws RivuletError `cursor_invalid`
 */
export function placeIn({ last }: Outline, bounds: Bounds, cursor: Position | undefined): Position {
  const { end } = bounds;
  if (cursor !== undefined && cursor.event > last) throw fail('cursor_invalid', 'Last-Event-ID', String(cursor.event));
  if (cursor === undefined) return end === undefined ? after(last) : beforeLast(end);
  if (cursor.event < bounds.after) return after(bounds.after);
  if (end === undefined || cursor.event < end) return cursor;
  return cursor.event === end && cursor.frames < Number.POSITIVE_INFINITY ? cursor : beforeLast(end);
}
