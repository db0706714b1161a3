import { tokenIn } from '../../core/encode.ts';
import type { Projection } from '../../http/sse/projection.ts';
import { chunksOf, eventIn, finishOf, nothingOpen, type Open, textFrom } from './chunks.ts';

/** A frame's id is the cursor `<event>.<chunk>`: the place after it. */
const frame = (n: number, chunk: number, json: string): string => `data: ${json}\nid: ${n}.${chunk}\n\n`;

/** What a reader of the stream asks for. */
interface Options {
  /** Yes-or-no questions are asked for as approvals, which clients know from version 6 on. */
  readonly approvals: boolean;
  /**
   * Tokens of a batch are joined to chunks of some hundred. A chat takes as long for a chunk of one token as for one of a hundred, and a page
   * that loads gets thousands at once. Not for clients that count chunks.
   */
  readonly joins: boolean;
}

/** The end of a text chunk and of its text, before the id. */
const textEnd = '"}\nid: ';
/** Characters up to which a chunk takes more tokens: each copies it. */
const joinedChars = 1_000;

/** The frame of a token: another one, or the last one with the token as well, where that is of the same text. */
function addToken(frames: string[], n: number, head: string, token: string, joins: boolean): void {
  const last = joins ? frames.at(-1) : undefined;
  if (last !== undefined && last.length < joinedChars && last.startsWith(head)) {
    frames[frames.length - 1] = `${last.slice(0, last.lastIndexOf(textEnd))}${token.slice(1)}}\nid: ${n}.1\n\n`;
  } else frames.push(`${head}${token}}\nid: ${n}.1\n\n`);
}

/** A log as a UI message stream. Tokens, most of a log, are neither parsed nor encoded again. */
const streamOf = ({ approvals, joins }: Options): Projection<Open> => ({
  start: nothingOpen,
  shared: true,
  project(open, line, n, frames) {
    const token = open.asked === undefined ? tokenIn(line) : undefined;
    if (token === undefined) {
      const step = chunksOf(open, eventIn(line), n, approvals);
      let count = 0;
      for (const chunk of step.chunks) {
        count += 1;
        frames.push(frame(n, count, JSON.stringify(chunk)));
      }
      return step.open;
    }
    if (open.text !== undefined) {
      addToken(frames, n, open.text.head, token, joins);
      return open;
    }
    const text = textFrom(n);
    frames.push(frame(n, 1, `{"type":"text-start","id":"${text.id}"}`), `${text.head}${token}}\nid: ${n}.2\n\n`);
    return { ...open, text };
  },
});

export const uiStream = streamOf({ approvals: false, joins: false });
export const uiStreamWithApprovals = streamOf({ approvals: true, joins: false });
const joinedStream = streamOf({ approvals: false, joins: true });
const joinedStreamWithApprovals = streamOf({ approvals: true, joins: true });

/** The same projection for all readers that ask for the same, so that they share its frames. */
export function uiStreamFor({ approvals, joins }: Options): Projection<Open> {
  if (joins) return approvals ? joinedStreamWithApprovals : joinedStream;
  return approvals ? uiStreamWithApprovals : uiStream;
}

/**
 * The frames at a clean end. They have no id, and so no place in the log: a question that has its reply is not the end
 * of a stream that is read later.
 */
export function endOf(open: Open): string {
  const finish = finishOf(open);
  return `${finish === undefined ? '' : `data: ${JSON.stringify(finish)}\n\n`}data: [DONE]\n\n`;
}
