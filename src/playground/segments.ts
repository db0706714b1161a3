import type { MessagePart } from '../client/client.ts';
import type { Block, StepBlock } from './content.ts';
import type { Note } from './run-notes.ts';

/** A line among the steps of a run. */
export type StepRow = { readonly step: StepBlock } | { readonly note: Note };

/** What is shown one below the other: steps that follow each other are one list. */
export type Segment =
  | { readonly kind: 'steps'; readonly rows: readonly StepRow[] }
  | { readonly kind: 'text'; readonly text: string; readonly from: number; readonly inserts: readonly Insert[] }
  | { readonly kind: 'artifact'; readonly artifact: MessagePart };

/** Notes that came in the middle of a text, shown after the Markdown block that they are in. */
interface Insert {
  /** The position in the segment's text. */
  readonly at: number;
  readonly note: Note;
}

/** Merges the blocks of a message with the notes that came while it was open, in the order of the log. */
export function segmentsOf(blocks: readonly Block[], notes: readonly Note[]): Segment[] {
  const segments: Segment[] = [];
  const addRow = (row: StepRow): void => {
    const last = segments.at(-1);
    if (last?.kind === 'steps') segments[segments.length - 1] = { kind: 'steps', rows: [...last.rows, row] };
    else segments.push({ kind: 'steps', rows: [row] });
  };
  let next = 0;
  /** Takes the notes that come before a position in the message. */
  const take = (isBefore: (parts: number, text: number) => boolean): Note[] => {
    const taken: Note[] = [];
    for (let note = notes[next]; note !== undefined; note = notes[next]) {
      const { parts = 0, text = 0 } = note.position ?? {};
      if (!isBefore(parts, text)) break;
      taken.push(note);
      next += 1;
    }
    return taken;
  };
  for (const block of blocks) {
    if (block.kind === 'text') {
      const { text, from, end } = block;
      for (const note of take((_, position) => position <= from)) addRow({ note });
      const inside = take((parts, position) => parts <= end && position < from + text.length);
      segments.push({
        kind: 'text',
        text,
        from,
        inserts: inside.map((note) => ({ at: (note.position?.text ?? from) - from, note })),
      });
      continue;
    }
    const index = block.kind === 'step' ? (block.parts[0] ?? 0) : block.index;
    for (const note of take((parts) => parts <= index)) addRow({ note });
    if (block.kind === 'step') addRow({ step: block });
    else segments.push({ kind: 'artifact', artifact: block.artifact });
  }
  for (const note of take(() => true)) addRow({ note });
  return segments;
}
