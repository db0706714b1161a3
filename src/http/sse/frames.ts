import type { ChangeEvent } from '../../engine/changes/change-reader.ts';

/**
 * One event in the SSE format: `id` is its number in the run, `data` its JSON. Lines end with LF. The id comes last, here and in
 * every protocol but AG-UI: some clients take the id of an event that was cut off as their cursor.
 */
export const frame = (id: number, line: string): string => `data: ${line}\nid: ${id}\n\n`;

/**
 * Characters of frames in one write; a longer event is one write by itself. A client that does not read has one pending
 * write.
 */
const pieceChars = 16 * 1024;

/**
 * Frames that are written together, at least one. All readers of a batch write the same chunk. With a chunk for each reader,
 * V8 would copy the text once a reader.
 */
export class Piece {
  /** The frames as a chunk of HTTP/1.1. */
  readonly chunk: string;
  /** A text with as many bytes as characters is ASCII, for which `latin1` is the cheaper encoding. */
  readonly encoding: 'latin1' | 'utf8';

  constructor(text: string) {
    // To count the bytes, V8 joins the pieces of a text, and to write it as well: here of one text, where it is ASCII.
    const chunk = chunkOf(text, text.length);
    const more = Buffer.byteLength(chunk) - chunk.length;
    this.chunk = more === 0 ? chunk : chunkOf(text, text.length + more);
    this.encoding = more === 0 ? 'latin1' : 'utf8';
  }

  /** The frames alone, for the few responses that make their own chunks. Kept as well, each text would be there twice. */
  get text(): string {
    return this.chunk.slice(this.chunk.indexOf('\n') + 1, -2);
  }
}

const chunkOf = (text: string, bytes: number): string => `${bytes.toString(16)}\r\n${text}\r\n`;

/** Joins frames to pieces. */
export function toPieces(frames: readonly string[]): Piece[] {
  const first = frames[0];
  // Most batches are one token. V8 makes room for 17 pieces at the first push.
  if (frames.length === 1 && first !== undefined) return [new Piece(first)];
  const pieces: Piece[] = [];
  let text = '';
  for (const one of frames) {
    if (text !== '' && text.length + one.length > pieceChars) {
      pieces.push(new Piece(text));
      text = '';
    }
    text += one;
  }
  if (text !== '') pieces.push(new Piece(text));
  return pieces;
}

/** Rewrites the text of the last piece. */
export const rewriteEnd = (pieces: readonly Piece[], rewrite: (text: string) => string): readonly Piece[] =>
  pieces.map((piece, index) => (index === pieces.length - 1 ? new Piece(rewrite(piece.text)) : piece));

/** The frames of changed runs, in pieces. They have a type: an EventSource needs a listener for each. */
export const changeFramesOf = (events: readonly ChangeEvent[]): Piece[] =>
  toPieces(
    events.map(({ type, data, position }) => {
      const id = position === undefined ? '' : `id: ${position}\n`;
      return `event: ${type}\ndata: ${data}\n${id}\n`;
    }),
  );
