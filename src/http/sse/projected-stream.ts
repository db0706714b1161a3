import type { FastifyReply } from 'fastify';
import { fail } from '../../core/errors.ts';
import type { Batch } from '../../core/ports/run-store.ts';
import { isSettling, runEventOf } from '../../core/recognize.ts';
import type { Access } from '../../engine/access.ts';
import { unwatched } from '../../engine/cluster/connected-readers.ts';
import type { Cursor } from '../../engine/log/cursor.ts';
import type { ErrorBody } from '../../schema/error.ts';
import { refusalOf } from '../requests/errors.ts';
import { onceClosed } from '../requests/once-closed.ts';
import type { StreamMode, TrafficObserver } from '../traffic.ts';
import { type Piece, rewriteEnd } from './frames.ts';
import { Paced } from './paced.ts';
import { beginning, type Position, type Projection, Projector } from './projection.ts';
import { type Ending, type SharedOptions, sendStream } from './stream.ts';
import type { BatchSource } from './writer.ts';

type Until<State> = 'settled' | 'final' | ((state: State) => boolean);

/** A stream in the words of a protocol, which ends cleanly only where the run does. */
export interface ProjectedStream<State> {
  readonly projection: Projection<State>;
  /** What the client has. Default: nothing. */
  readonly from?: Position;
  /**
   * Default `settled`: the next event that settles the run. A function says of a state whether the stream is complete once
   * it has all of the log: it goes on after questions that have their replies already, and ends at one that has none,
   * whatever the agent has said since.
   */
  readonly until?: Until<State>;
  /** `run` (default) where the request has made or resumed the run. */
  readonly mode?: StreamMode;
  /**
   * Frames before the rest of a log, where a stream has to begin with more than that rest. It is given the state at the
   * position of the client, and the frames that are left of the event there; it throws where that is no place of the
   * client's stream.
   */
  readonly lead?: (state: State, left: readonly string[]) => readonly string[];
  /** Frames after the last one of the log, where the stream ends cleanly; default: none. */
  readonly end?: (state: State) => string;
  /** The last frame of a stream that has to end early, or '' for none; default: the connection is broken. */
  readonly interrupted?: (error: ErrorBody) => string;
  /** Rewrites the end of a batch's frames where no further event is durable, in a protocol that says so. */
  readonly atTail?: (text: string) => string;
  /** Milliseconds between two reads of tokens, where the frames of a batch are few whatever its tokens; default: 0. */
  readonly pace?: number;
  /** Milliseconds after which the stream ends, in a protocol whose clients continue then; default: only with the run. */
  readonly timeout?: number;
}

/** What all streams of a server share, with the observer of those that continue after a cursor. */
export interface Streams extends SharedOptions {
  readonly traffic: TrafficObserver;
}

/** See `Responder.project`. */
export async function sendProjected<State>(
  reply: FastifyReply,
  access: Access,
  run_id: string,
  options: ProjectedStream<State>,
  streams: Streams,
): Promise<void> {
  const { projection, from = beginning, until = 'settled', mode = 'run', lead, atTail } = options;
  // First, so that a position behind the end is refused, and no event is missed.
  const isOpenEnded = typeof until === 'function';
  const cursor = await access.openCursor(run_id, {
    after: from.event,
    name: from.name,
    until: isOpenEnded ? 'final' : until,
    keeps: false,
  });
  try {
    const projector = new Projector(projection);
    const left = await leftAt(projector, projection, from, access, run_id);
    const first = [...(lead?.(projector.state, left) ?? []), ...left].join('');
    const leave = connectReader(reply, access, cursor);
    const stopTimer = closeAfter(options.timeout, cursor);
    const onClose = (early: boolean): void => {
      stopTimer();
      leave(early);
    };
    if (!isOpenEnded && isComplete(projector, until, cursor) && (left.length > 0 || cursor.behind === 0))
      cursor.close();
    if (mode === 'events' && from.event > 0) streams.traffic.onStreamResumed(cursor.behind);
    const piecesOf = (batch: Batch): readonly Piece[] => {
      const pieces = projector.piecesOf(batch);
      return atTail !== undefined && cursor.caughtUp ? rewriteEnd(pieces, atTail) : pieces;
    };
    const ending = (error: unknown): Ending => endingOf(error, reply, projector, cursor, options);
    const source: BatchSource<Batch> = {
      read: () => (isOpenEnded && isComplete(projector, until, cursor) ? 'end' : cursor.read()),
      onReady: (callback) => cursor.onReady(callback),
      get ended() {
        return cursor.ended;
      },
      close: () => cursor.close(),
    };
    const paced = options.pace === undefined ? source : new Paced(source, options.pace);
    sendStream(reply, paced, piecesOf, { streams, mode, onClose, lead: first, ending });
  } catch (error) {
    cursor.close();
    throw error;
  }
}

/** Folds the log up to a position. Returns the frames that the position leaves of its event. */
async function leftAt<State>(
  projector: Projector<State>,
  { start }: Projection<State>,
  from: Position,
  access: Access,
  run_id: string,
): Promise<readonly string[]> {
  if (from.event === 0) return [];
  // Without a state, the frames of an event depend on that event alone.
  const after = start === undefined ? from.event - 1 : 0;
  return projector.skipTo(from, await access.stream(run_id, { after, seen: from.event, until: 'now', keeps: false }));
}

/** Whether a stream is complete with what it has. */
const isComplete = <State>({ last, state }: Projector<State>, until: Until<State>, cursor: Cursor): boolean =>
  typeof until === 'function'
    ? cursor.caughtUp && until(state)
    : isSettling(last) && (until !== 'final' || runEventOf(last ?? '') !== 'awaiting');

function endingOf<State>(
  error: unknown,
  { request }: FastifyReply,
  projector: Projector<State>,
  cursor: Cursor,
  { until = 'settled', end, interrupted }: ProjectedStream<State>,
): Ending {
  if (error === undefined && isComplete(projector, until, cursor)) return { text: end?.(projector.state) ?? '' };
  return interrupted === undefined
    ? 'break'
    : { text: interrupted(refusalOf(error ?? fail('stopping'), request).body) };
}

/** Closes a cursor after so many milliseconds. Returns a function that stops the timer. */
export function closeAfter(milliseconds: number | undefined, cursor: Cursor): () => void {
  if (milliseconds === undefined) return () => {};
  const timeout = setTimeout(() => cursor.close(), milliseconds);
  return () => clearTimeout(timeout);
}

/** A client reads a run. The holder of a stream ticket does not count: by leaving, it would cancel the run. */
export const connectReader = (
  { request }: FastifyReply,
  access: Access,
  cursor: Cursor,
): ((disconnected: boolean) => void) => (request.hasTicket ? unwatched : access.connectReader(cursor));

/** A client waits for a run until its response closes. */
export function countReader(reply: FastifyReply, access: Access, cursor: Cursor): void {
  const leave = connectReader(reply, access, cursor);
  if (leave !== unwatched) onceClosed(reply, () => leave(!reply.raw.writableEnded));
}
