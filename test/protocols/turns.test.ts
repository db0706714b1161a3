import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { responseId, turnOfResponse } from '../../src/protocols/openai/ids.ts';
import { type Bounds, boundsAfter, boundsAt, type Outline, startOf } from '../../src/protocols/turns.ts';
import type { LoggedStatus } from '../../src/schema/statuses.ts';
import { busyLogs, logs } from '../support/logs.ts';
import { outlineIn } from './continues.ts';

const run_id = '01a201c2-4407-7001-80bc-e75f1d221442';
const outline = (last: number, ...statuses: readonly [number, LoggedStatus][]): Outline => ({
  changes: statuses.map(([n, status]) => ({ n, status })),
  last,
});
/** A question at 4, while whose reply is awaited the agent has gone on; its reply at 6, and the end at 9. */
const answered = outline(9, [1, 'created'], [2, 'in-progress'], [4, 'awaiting'], [6, 'in-progress'], [9, 'completed']);
const awaiting = outline(5, [1, 'created'], [2, 'in-progress'], [4, 'awaiting']);
const working = outline(7, [1, 'created'], [2, 'in-progress'], [4, 'awaiting'], [6, 'in-progress']);

/** All turns of a log, each from the end of the one before. */
function turnsIn(read: Outline): Bounds[] {
  const turns: Bounds[] = [];
  for (let after: number | undefined = 0; after !== undefined && after < read.last; ) {
    const bounds = boundsAfter(read, after);
    turns.push(bounds);
    after = bounds.end;
  }
  return turns;
}

describe('the turns of a run', () => {
  it('end at a question and where the run ends; what an agent says while it awaits counts to the later one', () => {
    expect(turnsIn(answered)).toEqual([
      { after: 0, end: 4 },
      { after: 4, end: 9 },
    ]);
    expect(turnsIn(awaiting)).toEqual([{ after: 0, end: 4 }, { after: 4 }]);
    expect([0, 3, 4, 5, 8].map((n) => boundsAfter(answered, n).after)).toEqual([0, 0, 4, 4, 4]);
  });

  it('follow each other with no missing or duplicate events, in any log', () => {
    fc.assert(
      fc.property(fc.oneof(logs, busyLogs), fc.nat(), (log, anywhere) => {
        const read = outlineIn(log);
        const turns = turnsIn(read);
        const n = anywhere % log.length;
        expect(turns.filter(({ after, end = log.length }) => after <= n && n < end)).toEqual([boundsAfter(read, n)]);
      }),
    );
  });

  it('have a newest one, in which a reader without a cursor goes on: its question is its end', () => {
    expect(boundsAt(working, undefined)).toEqual({ after: 4 });
    expect(boundsAt(awaiting, undefined)).toEqual({ after: 0, end: 4 });
    expect(boundsAt(answered, undefined)).toEqual({ after: 4, end: 9 });
  });

  it('are found by the cursor of a reader, also one at the end of the log', () => {
    expect(boundsAt(answered, { event: 3, frames: 1 })).toEqual({ after: 0, end: 4 });
    expect(boundsAt(answered, { event: 4, frames: 1 })).toEqual({ after: 4, end: 9 });
    expect(boundsAt(answered, { event: 9, frames: 1 })).toEqual({ after: 4, end: 9 });
    expect(boundsAt(awaiting, { event: 5, frames: 1 })).toEqual({ after: 0, end: 4 });
  });

  it('begin before the first frame of their first event', () => {
    expect(startOf({ run_id, after: 0 })).toEqual({ event: 0, frames: 0 });
    expect(startOf({ run_id, after: 5 })).toEqual({ event: 6, frames: 0 });
  });

  it('have the ids of responses, which tell the turn again', () => {
    expect([0, 5].map((after) => responseId({ run_id, after }))).toEqual([`resp_${run_id}`, `resp_${run_id}_6`]);
    for (const after of [0, 1, 8, 9, 99, 123_456]) {
      expect(turnOfResponse(responseId({ run_id, after }))).toEqual({ run_id, after });
    }
    for (const wrong of ['_0', '_1', '_06', '_', '_12345678901']) {
      expect(() => turnOfResponse(`resp_${run_id}${wrong}`)).toThrow('There is no run');
    }
  });
});
