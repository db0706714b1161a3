import { describe, expect, it } from 'vitest';
import { canBecome, isFinal, isSettled, transitions } from '../../src/core/run-state.ts';
import { RunStatus } from '../../src/schema/run.ts';

const all = RunStatus.anyOf.map(({ const: status }) => status);

/** Section 2 of the wire contract, written out. */
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
  it('takes the transitions of the contract and no other', () => {
    const possible = all.flatMap((from) => all.filter((to) => canBecome(from, to)).map((to) => `${from} → ${to}`));
    expect(possible.sort()).toEqual([...legal].sort());
  });

  it('is never left once it is final', () => {
    expect(all.filter(isFinal).sort()).toEqual(['cancelled', 'completed', 'failed']);
    for (const status of all.filter(isFinal)) expect(transitions[status]).toEqual([]);
  });

  it('is settled when final or awaiting', () => {
    expect(all.filter(isSettled).sort()).toEqual(['awaiting', 'cancelled', 'completed', 'failed']);
  });
});
