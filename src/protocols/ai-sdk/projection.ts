import { tokenIn } from '../../core/encode.ts';
import type { Projection } from '../../http/sse/projection.ts';
import { chunksOf, eventIn, finishOf, nothingOpen, type Open, textFrom } from './chunks.ts';

/** A frame's id is the cursor `<event>.<chunk>`: the place after it. */
const frame = (n: number, chunk: number, json: string): string => `id: ${n}.${chunk}\ndata: ${json}\n\n`;

/** A log as a UI message stream. Tokens, most of a log, are neither parsed nor encoded again. */
const streamOf = (approvals: boolean): Projection<Open> => ({
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
      frames.push(`id: ${n}.1\n${open.text.head}${token}}\n\n`);
      return open;
    }
    const text = textFrom(n);
    frames.push(frame(n, 1, `{"type":"text-start","id":"${text.id}"}`), `id: ${n}.2\n${text.head}${token}}\n\n`);
    return { ...open, text };
  },
});

export const uiStream = streamOf(false);
/** Yes-or-no questions are asked for as approvals, which clients know from version 6 on. */
export const uiStreamWithApprovals = streamOf(true);

/**
 * The frames at a clean end. They have no id, and so no place in the log: a question that has its reply is not the end
 * of a stream that is read later.
 */
export function endOf(open: Open): string {
  const finish = finishOf(open);
  return `${finish === undefined ? '' : `data: ${JSON.stringify(finish)}\n\n`}data: [DONE]\n\n`;
}
