import { runEventOf } from '../core/recognize.ts';
import { isSettled } from '../core/run-state.ts';
import type { Access } from '../engine/access.ts';
import { beginning, type Position } from '../http/sse/projection.ts';
import type { Event } from '../schema/event.ts';
import type { AwaitRequest } from '../schema/run.ts';
import type { LoggedStatus } from '../schema/statuses.ts';

// A run is one turn until it first awaits a reply; each reply begins another. To the clients of other protocols, a turn is
// a run, a response or a stream of its own.

/** A turn, as the engine names it to the request that has begun it. */
export interface Turn {
  readonly run_id: string;
  /** The event before it; 0 for the first turn of a run. */
  readonly after: number;
}

/** The position before the first frame of a turn. Its event is there: a node that does not know it reads the store. */
export const startOf = ({ after }: Turn): Position => (after === 0 ? beginning : { event: after + 1, frames: 0 });

/** The events at which a run changed its status, without what is in them, and its last event. */
export interface Outline {
  readonly changes: readonly { readonly n: number; readonly status: LoggedStatus }[];
  readonly last: number;
}

/** Reads the heads of all lines, at least to an event that a client has seen. @throws RivuletError `run_unknown`, `log_removed` */
export async function outlineOf(own: Access, run_id: string, seen = 0): Promise<Outline> {
  const changes: { n: number; status: LoggedStatus }[] = [];
  let last = 0;
  for await (const { first, lines } of await own.stream(run_id, { seen, until: 'now', keeps: false })) {
    for (const [index, line] of lines.entries()) {
      const status = runEventOf(line);
      if (status !== undefined) changes.push({ n: first + index, status });
    }
    last = first + lines.length - 1;
  }
  return { changes, last };
}

/** The end of a log as it is now: the number of its last event, and whether that is the final one. @throws as `outlineOf` */
export async function endOf(own: Access, run_id: string, after = 0): Promise<{ last: number; final: boolean }> {
  const log = await own.openCursor(run_id, { after, until: 'now', keeps: false });
  log.close();
  return { last: after + log.behind, final: log.final };
}

/** The event with a number; undefined where there is none yet. @throws RivuletError as `outlineOf`, `cursor_invalid` */
export async function eventAt(own: Access, run_id: string, n: number): Promise<Event | undefined> {
  for await (const { lines } of await own.stream(run_id, { after: n - 1, until: 'now' })) {
    return lines[0] === undefined ? undefined : JSON.parse(lines[0]);
  }
  return undefined;
}

/** The question that an event asks; undefined for any other event. @throws as `eventAt` */
export async function questionAt(own: Access, run_id: string, n: number): Promise<AwaitRequest | undefined> {
  const event = await eventAt(own, run_id, n);
  return event?.type === 'run.awaiting' ? event.run.await_request : undefined;
}

/**
 * The event that settled the run before a turn, and the one that settles it, if there is one. What an agent says while it
 * awaits is between two turns; it counts to the later one.
 */
export interface Bounds {
  readonly after: number;
  readonly end?: number;
}

/** The bounds of the turn of event `n + 1`. */
export function boundsAfter({ changes }: Outline, n: number): Bounds {
  const settling = changes.filter(({ status }) => isSettled(status));
  const after = settling.findLast((change) => change.n <= n)?.n ?? 0;
  const end = settling.find((change) => change.n > n)?.n;
  return end === undefined ? { after } : { after, end };
}

/** The bounds of the turn that a reader goes on in: that of the event after its cursor, or the newest one. */
export function boundsAt(outline: Outline, cursor: Position | undefined): Bounds {
  const { changes, last } = outline;
  const change = changes.at(-1);
  // An agent may go on while it awaits. The question is the end of the turn all the same.
  const newest = change !== undefined && isSettled(change.status) ? change.n - 1 : last;
  return boundsAfter(outline, Math.min(cursor?.event ?? newest, newest));
}
