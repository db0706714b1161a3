import type { Batch } from '../core/store.ts';

/** One event as SSE has it: `id` is its place in the run, `data` its JSON, LF only. */
export const frame = (id: number, line: string): string => `id: ${id}\ndata: ${line}\n\n`;

/**
 * Characters of frames that are written at a time; a longer event is one write. A reader who does not read
 * has one write waiting.
 */
const pieceChars = 16 * 1024;
/** What is kept for the next reader: readers who keep up come within the same turn, those of a replay soon after. */
const keptBatches = 512;
const keptChars = 8 * 1024 * 1024;

/** A text, and how many bytes it is as UTF-8. */
export interface Piece {
  readonly text: string;
  readonly bytes: number;
}

const kept = new Map<Batch, readonly Piece[]>();
// A ring, because to look for a Map's oldest entry costs more with each one that was deleted before.
const ring: (Batch | undefined)[] = [];
let oldest = 0;
let newest = 0;
let chars = 0;

/** The frames of a batch in pieces of text, made once however many read it at about the same time. */
export function framesOf(batch: Batch): readonly Piece[] {
  const known = kept.get(batch);
  if (known !== undefined) return known;
  const pieces = cut(batch);
  keep(batch, pieces);
  return pieces;
}

function cut({ first, lines }: Batch): Piece[] {
  const pieces: Piece[] = [];
  let piece = '';
  for (const [index, line] of lines.entries()) {
    const text = frame(first + index, line);
    if (piece !== '' && piece.length + text.length > pieceChars) {
      pieces.push(measured(piece));
      piece = '';
    }
    piece += text;
  }
  if (piece !== '') pieces.push(measured(piece));
  return pieces;
}

// Not for as long as the batch lives: in a store in memory that is for ever, and would double it.
function keep(batch: Batch, pieces: readonly Piece[]): void {
  kept.set(batch, pieces);
  ring[newest] = batch;
  newest = (newest + 1) % keptBatches;
  chars += sizeOf(pieces);
  while (chars > keptChars || kept.size === keptBatches) drop();
}

function drop(): void {
  const batch = ring[oldest];
  ring[oldest] = undefined;
  oldest = (oldest + 1) % keptBatches;
  if (batch === undefined) return;
  chars -= sizeOf(kept.get(batch) ?? []);
  kept.delete(batch);
}

const measured = (text: string): Piece => ({ text, bytes: Buffer.byteLength(text) });
const sizeOf = (pieces: readonly Piece[]): number => pieces.reduce((sum, { text }) => sum + text.length, 0);
