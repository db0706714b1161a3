import { describe, expect, it } from 'vitest';
import { canBecome, isSettled } from '../../src/core/run-state.ts';
import { RunStatus } from '../../src/schema/run.ts';

const all = RunStatus.anyOf.map(({ const: status }) => status);

/** The transitions of the protocol. */
const legal = [
  'created → in-progress',
  'created → failed',
  'created → cancelling',
  'in-progress → completed',
  'in-progress → failed',
  'in-progress → awaiting',
  'in-progress → cancelling',
  'awaiting → in-progress',
  'awaiting → failed',
  'awaiting → cancelling',
  'cancelling → cancelled',
];

describe('the status of a run', () => {
  it('allows the transitions of the protocol and no other', () => {
    const possible = all.flatMap((from) => all.filter((to) => canBecome(from, to)).map((to) => `${from} → ${to}`));
    expect(possible.sort()).toEqual([...legal].sort());
  });

  it('is settled when it is final or awaiting', () => {
    expect(all.filter(isSettled).sort()).toEqual(['awaiting', 'cancelled', 'completed', 'failed']);
  });
});
