import { flat } from '../../core/encode.ts';
import { isSettling, runEventOf } from '../../core/recognize.ts';
import type { Projection } from '../../http/sse/projection.ts';
import { offsetAfter } from './request.ts';

const controlHead = 'event: control\ndata: {"streamNextOffset":"';
const control = (n: number, more: string): string => `${controlHead}${offsetAfter(n)}"${more}}\n\n`;

/** The control event for a client that has all events, and no later one will come. */
export const closedControl = (n: number): string => control(n, ',"upToDate":true,"streamClosed":true');

/** The control event for a client that has all events so far. */
export const upToDateControl = (n: number, cursor: string): string =>
  control(n, `,"streamCursor":"${cursor}","upToDate":true`);

/**
 * Says in the last control event of a text that the client is up to date. Not in an event of its own: clients pass it
 * on with the data before it.
 */
export const withUpToDate = (text: string): string => `${text.slice(0, -3)},"upToDate":true}\n\n`;

/** The end of a data event, and the control event up to its offset. */
const dataEnd = `]\n\n${controlHead}`;

/**
 * A data event with one event of the log, and a control event with the offset after it, in one frame: a client that
 * has data without its control event would read them again.
 */
function framesWith(cursor: string): Projection<undefined> {
  // As few texts as possible, and flat ones: there is a frame for each token.
  const end = flat(`","streamCursor":"${cursor}"}\n\n`);
  const lastEnd = '","streamClosed":true}\n\n';
  return {
    start: undefined,
    shared: true,
    project(_, line, n, frames) {
      const isLast = isSettling(line) && runEventOf(line) !== 'awaiting';
      frames.push(`event: data\ndata: [${line}${dataEnd}${offsetAfter(n)}${isLast ? lastEnd : end}`);
      return undefined;
    },
  };
}

/**
 * The projection for each cursor. It keeps the last one: all clients without a cursor get the same one for 20 seconds,
 * and share their frames.
 */
export function sharedProjections(): (cursor: string) => Projection<undefined> {
  let last: { cursor: string; projection: Projection<undefined> } | undefined;
  return (cursor) => {
    if (last?.cursor !== cursor) last = { cursor, projection: framesWith(cursor) };
    return last.projection;
  };
}
