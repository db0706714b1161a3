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

/** Joins frames to pieces. */
export function toPieces(frames: readonly string[]): Piece[] {
  const pieces: Piece[] = [];
  let text = '';
  for (const one of frames) {
    if (text !== '' && text.length + one.length > pieceChars) {
      pieces.push(measured(text));
      text = '';
    }
    text += one;
  }
  if (text !== '') pieces.push(measured(text));
  return pieces;
}

/** Rewrites the text of the last piece. */
export const rewriteEnd = (pieces: readonly Piece[], rewrite: (text: string) => string): readonly Piece[] =>
  pieces.map((piece, index) => (index === pieces.length - 1 ? measured(rewrite(piece.text)) : piece));

const measured = (text: string): Piece => ({ text, bytes: Buffer.byteLength(text) });

/** The frames of changed runs, in pieces. They have a type: an EventSource needs a listener for each. */
export const changeFramesOf = (events: readonly ChangeEvent[]): Piece[] =>
  toPieces(
    events.map(({ type, data, position }) => {
      const id = position === undefined ? '' : `id: ${position}\n`;
      return `event: ${type}\n${id}data: ${data}\n\n`;
    }),
  );
