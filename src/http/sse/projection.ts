import { roomForOne } from '../../core/collections.ts';
import { fail } from '../../core/errors.ts';
import type { Batch } from '../../core/ports/run-store.ts';
import { type Piece, toPieces } from './frames.ts';

/**
 * How a protocol writes a log: a pure fold of its events. The same log gives the same frames for each reader, on each
 * node and after each restart, so that a broken stream goes on exactly where it broke, and nothing is stored for it.
 */
export interface Projection<State> {
  /** The state before the first event. */
  readonly start: State;
  /** Whether the frames depend on nothing but the log. All readers share them then. */
  readonly shared: boolean;
  /**
   * Adds the frames of event `n` to `frames`, each a whole SSE event, and returns the state after it. It changes no
   * state that it was given: readers share them. It may replace the last frame of an earlier event of the batch, where a
   * client that has the new one needs the other no more.
   */
  project(state: State, line: string, n: number, frames: string[]): State;
}

/**
 * A place between two frames: the client has all frames of the events before `event`, and the first `frames` of its own;
 * a negative number counts from the end, as in `slice`.
 */
export interface Position {
  readonly event: number;
  readonly frames: number;
  /** What errors call it, such as the name of the header that it came in. */
  readonly name?: string;
}

export const beginning: Position = { event: 0, frames: 0 };

/** The place after the last frame of an event. */
export const after = (event: number): Position => ({ event, frames: Number.POSITIVE_INFINITY });

/** The SSE id of a frame of event `n`: `n` for the last one, and `n.1`, `n.2`, … for those before it. */
export const frameId = (n: number, index: number, count: number): string =>
  index + 1 === count ? `${n}` : `${n}.${index + 1}`;

/** The place after the frame that an id of `frameId` names. @throws RivuletError `cursor_invalid` */
export function afterFrame(name: string, id: string): Position {
  const [, event, frames] = /^(\d{1,15})(?:\.(\d{1,6}))?$/.exec(id) ?? [];
  if (event === undefined) throw fail('cursor_invalid', name, id.slice(0, 100));
  const place = frames === undefined ? after(Number(event)) : { event: Number(event), frames: Number(frames) };
  return { ...place, name };
}

/** What a reader in a protocol makes of a batch. */
interface Reading<State> {
  readonly projection: Projection<State>;
  readonly before: State;
  readonly after: State;
  readonly pieces: readonly Piece[];
}

/** A batch, with what its first reader in a protocol has made of it. */
interface Projected<State> extends Batch {
  projected?: Reading<State>;
}

/**
 * Reads a batch from a state on. What it gives lives as long as the batch, which the tail of a log or a shared page keeps
 * while a reader needs it; a batch keeps that of the protocol that has read it last.
 */
function readBatch<State>(batch: Projected<State>, projection: Projection<State>, before: State): Reading<State> {
  const { projected } = batch;
  if (projected?.projection === projection && projected.before === before) return projected;
  const frames = roomForOne();
  let state = before;
  let n = batch.first;
  for (const line of batch.lines) {
    state = projection.project(state, line, n, frames);
    n += 1;
  }
  const reading = { projection, before, after: state, pieces: toPieces(frames) };
  if (projection.shared) batch.projected = reading;
  return reading;
}

/** The frames of batches in a protocol without a state: each event has its own. One function serves all streams. */
export const piecesIn =
  (projection: Projection<undefined>) =>
  (batch: Batch): readonly Piece[] =>
    readBatch(batch, projection, undefined).pieces;

/** One reader of a log in the words of a protocol. */
export class Projector<State> {
  readonly #projection: Projection<State>;
  #state: State;
  #last: string | undefined;

  constructor(projection: Projection<State>) {
    this.#projection = projection;
    this.#state = projection.start;
  }

  get state(): State {
    return this.#state;
  }

  /** The line of the last event. */
  get last(): string | undefined {
    return this.#last;
  }

  /** The frames of the next batch. */
  readonly piecesOf = (batch: Batch): readonly Piece[] => {
    const { after, pieces } = readBatch(batch, this.#projection, this.#state);
    this.#state = after;
    this.#last = batch.lines.at(-1);
    return pieces;
  };

  /** Takes one event. Returns its frames. */
  take(line: string, n: number): string[] {
    const frames: string[] = [];
    this.#state = this.#projection.project(this.#state, line, n, frames);
    this.#last = line;
    return frames;
  }

  /**
   * Takes the events up to a position, in time that grows with their number. Returns the frames that the position leaves
   * of its event. @throws RivuletError `cursor_invalid` where the events end before it
   */
  async skipTo({ event, frames }: Position, events: AsyncIterable<Batch>): Promise<string[]> {
    for await (const { first, lines } of events) {
      for (const [index, line] of lines.entries()) {
        const own = this.take(line, first + index);
        if (first + index === event) return own.slice(frames);
      }
    }
    // Without the state there, the frames that follow would be others.
    throw fail('cursor_invalid', 'the position', String(event));
  }
}
