import type { Batch } from '../../core/store.ts';

/** One event as SSE has it: `id` is its place in the run, `data` its JSON, LF only. */
export const frame = (id: number, line: string): string => `id: ${id}\ndata: ${line}\n\n`;

/**
 * Characters of frames that are written at a time; a longer event is one write. A reader who does not read
 * has one write waiting.
 */
const pieceChars = 16 * 1024;

/** A text, and how many bytes it is as UTF-8. */
export interface Piece {
  readonly text: string;
  readonly bytes: number;
}

/** A batch with the frames that were made of it for its first reader. */
interface Framed extends Batch {
  pieces?: readonly Piece[];
}

/**
 * The frames of a batch in pieces of text, made once however many read it. They are kept with the batch, which is
 * a log's for as long as one of its readers wants it, or a page's that readers share.
 */
export function framesOf(batch: Framed): readonly Piece[] {
  batch.pieces ??= cut(batch);
  return batch.pieces;
}

function cut({ first, lines }: Batch): Piece[] {
  const pieces: Piece[] = [];
  let piece = '';
  let id = first;
  for (const line of lines) {
    const text = frame(id, line);
    id += 1;
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
