import { describe, expect, it } from 'vitest';
import { encode } from '../../src/core/encode.ts';
import { isSettling, runEventOf } from '../../src/core/recognize.ts';
import { finalStatuses, isSettled, openStatuses, transitions } from '../../src/core/run-state.ts';
import { RunEventType } from '../../src/schema/event.ts';
import { RunStatus } from '../../src/schema/run.ts';
import { loggedStatuses, runStatuses } from '../../src/schema/statuses.ts';

describe('the one list of statuses', () => {
  it('is what schemas, transitions and lists are made of', () => {
    expect(RunStatus.anyOf.map(({ const: status }) => status)).toEqual(runStatuses);
    expect(RunEventType.anyOf.map(({ const: type }) => type)).toEqual(loggedStatuses.map((status) => `run.${status}`));
    expect(Object.keys(transitions).toSorted()).toEqual(runStatuses.toSorted());
    expect([...openStatuses, ...finalStatuses].toSorted()).toEqual(runStatuses.toSorted());
    expect(finalStatuses.toSorted()).toEqual(['cancelled', 'completed', 'failed']);
  });

  it('is what the heads of lines are recognised by', () => {
    for (const status of loggedStatuses) {
      const run = { run_id: 'r', agent_name: 'a', status, output: [], created_at: '' };
      const line = encode({ type: `run.${status}`, run });
      expect([runEventOf(line), isSettling(line)]).toEqual([status, isSettled(status)]);
    }
  });
});
