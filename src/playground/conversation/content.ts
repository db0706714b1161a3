import type { MessagePart } from '../../client/client.ts';
import { hasResult, indexOfCall, isCallOnly } from '../../core/tool-calls.ts';
import type { CitationMetadata, TrajectoryMetadata } from '../../schema/message.ts';
import type { Note } from './run-flow.ts';

/** Consecutive text of a message, without its citations. */
interface TextBlock {
  readonly kind: 'text';
  readonly text: string;
  /** The position in the message's text. */
  readonly from: number;
  /** The index of the first part after it. */
  readonly end: number;
}

interface StepBlock {
  readonly kind: 'step';
  readonly step: TrajectoryMetadata;
  /** The indexes of its parts: of the call and, where they are apart, of its result. */
  readonly parts: readonly number[];
}

interface ArtifactBlock {
  readonly kind: 'artifact';
  readonly artifact: MessagePart;
  readonly index: number;
}

export type Block = TextBlock | StepBlock | ArtifactBlock;

/** A message as the page shows it. */
export interface Content {
  readonly text: string;
  readonly citations: readonly CitationMetadata[];
  readonly artifacts: readonly MessagePart[];
  /** Texts, steps and artifacts in their order. */
  readonly blocks: readonly Block[];
}

export function contentOf(parts: readonly MessagePart[]): Content {
  const citations: CitationMetadata[] = [];
  const artifacts: MessagePart[] = [];
  const blocks: Block[] = [];
  let text = '';
  for (const [index, part] of parts.entries()) {
    if (part.metadata?.kind === 'citation') citations.push(part.metadata);
    if (part.metadata?.kind === 'trajectory') addStep(blocks, part.metadata, index);
    else if (isText(part)) {
      const { content = '' } = part;
      addText(blocks, content, text.length, index);
      text += content;
    } else if (part.content !== undefined || part.content_url !== undefined || part.name !== undefined) {
      artifacts.push(part);
      blocks.push({ kind: 'artifact', artifact: part, index });
    }
  }
  return { text, citations, artifacts, blocks };
}

function addText(blocks: Block[], content: string, from: number, index: number): void {
  if (content === '') return;
  const last = blocks.at(-1);
  if (last?.kind === 'text') blocks[blocks.length - 1] = { ...last, text: last.text + content, end: index + 1 };
  else blocks.push({ kind: 'text', text: content, from, end: index + 1 });
}

/** Adds a step. The result of a call that was shown before completes it. */
function addStep(blocks: Block[], step: TrajectoryMetadata, index: number): void {
  const calls = blocks.map((block) => {
    const { tool_name: name, tool_call_id } = block.kind === 'step' && isCallOnly(block.step) ? block.step : none;
    return { name, tool_call_id };
  });
  const at = step.tool_name !== undefined && hasResult(step) ? indexOfCall(step, calls) : -1;
  const open = blocks[at];
  if (open?.kind !== 'step') blocks.push({ kind: 'step', step, parts: [index] });
  else blocks[at] = { kind: 'step', step: { ...open.step, ...step }, parts: [...open.parts, index] };
}

/** Stands for the step of a block that is no open call. */
const none: Partial<TrajectoryMetadata> = {};

function isText({ name, content_type = 'text/plain', content_encoding, content_url }: MessagePart): boolean {
  const readable = /^text\/(plain|markdown)\b/i.test(content_type);
  return readable && name === undefined && content_encoding !== 'base64' && content_url === undefined;
}

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
