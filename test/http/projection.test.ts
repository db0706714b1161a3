import { describe, expect, it } from 'vitest';
import { tokenIn } from '../../src/core/recognize.ts';
import { eventFrames } from '../../src/http/requests/respond.ts';
import { frame } from '../../src/http/sse/frames.ts';
import { type Projection, Projector } from '../../src/http/sse/projection.ts';
import { expectExactRest } from '../protocols/continues.ts';

/** Counts tokens, and has two frames for each: its state and its frames depend on all events before. */
const counting: Projection<number> = {
  start: 0,
  shared: true,
  project(count, line, n, frames) {
    const token = tokenIn(line);
    if (token === undefined) return count;
    frames.push(frame(n, `${count}`), frame(n, token));
    return count + 1;
  },
};

describe('a projection', () => {
  it('of ACP goes on exactly after any frame of any log', () => expectExactRest(eventFrames));

  it('with a state goes on exactly after any frame of any log', () => expectExactRest(counting));

  it('is refused where the events end before the place of the client: its state would be another one', async () => {
    const events = (async function* () {
      yield { first: 1, lines: ['{"type":"generic","generic":{}}'] };
    })();
    const skipped = new Projector(counting).skipTo({ event: 2, frames: 0 }, events);
    await expect(skipped).rejects.toMatchObject({ kind: 'cursor_invalid' });
  });

  it('shares the frames of a batch between readers that have read the same events', () => {
    const line = '{"type":"message.part","part":{"content_type":"text/plain","content":"a"}}';
    const [first, second, late] = [new Projector(counting), new Projector(counting), new Projector(counting)];
    const batches = [
      { first: 1, lines: [line] },
      { first: 2, lines: [line, line] },
    ];
    const read = (reader: Projector<number>) => batches.map((batch) => reader.piecesOf(batch));
    const pieces = read(first);
    for (const [index, own] of read(second).entries()) expect(own).toBe(pieces[index]);
    late.take(line, 1);
    expect(late.piecesOf({ first: 2, lines: [line, line] })).toEqual(pieces[1]);
    expect(late.state).toBe(first.state);
  });
});
