import type { Batch } from '../../core/store.ts';
import type { ChangeEvent } from '../../engine/changes/change-reader.ts';

/** One event in the SSE format: `id` is its number in the run, `data` its JSON. Lines end with LF. */
export const frame = (id: number, line: string): string => `id: ${id}\ndata: ${line}\n\n`;

/**
 * Characters of frames in one write; a longer event is one write by itself. A client that does not read has one pending
 * write.
 */
const pieceChars = 16 * 1024;

/** A text, and its length in bytes as UTF-8. */
export interface Piece {
  readonly text: string;
  readonly bytes: number;
}

/** A batch, with the frames that its first reader has caused. */
interface Framed extends Batch {
  pieces?: readonly Piece[];
}

/**
 * The frames of a batch in pieces of text, created once for all readers. They live as long as the batch, which the tail
 * of a log or a shared page keeps while a reader needs it.
 */
export function framesOf(batch: Framed): readonly Piece[] {
  batch.pieces ??= toPieces(batch);
  return batch.pieces;
}

const toPieces = ({ first, lines }: Batch): Piece[] => joined(lines.map((line, index) => frame(first + index, line)));

/** Joins frames to pieces. */
function joined(frames: readonly string[]): Piece[] {
  const pieces: Piece[] = [];
  let piece = '';
  for (const text of frames) {
    if (piece !== '' && piece.length + text.length > pieceChars) {
      pieces.push(measured(piece));
      piece = '';
    }
    piece += text;
  }
  if (piece !== '') pieces.push(measured(piece));
  return pieces;
}

const measured = (text: string): Piece => ({ text, bytes: Buffer.byteLength(text) });

/** The frames of changed runs, in pieces. They have a type: an EventSource needs a listener for each. */
export const changeFramesOf = (events: readonly ChangeEvent[]): Piece[] =>
  joined(
    events.map(({ type, data, position }) => {
      const id = position === undefined ? '' : `id: ${position}\n`;
      return `event: ${type}\n${id}data: ${data}\n\n`;
    }),
  );
