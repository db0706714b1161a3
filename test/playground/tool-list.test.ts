import { describe, expect, it } from 'vitest';
import { trajectory } from '../../src/index.ts';
import type { LoggedEvent } from '../../src/playground/inspector/run-record.ts';
import { toolListOf } from '../../src/playground/inspector/tool-list.tsx';

type Step = Parameters<typeof trajectory>[0];

const logOf = (...steps: Step[]): LoggedEvent[] =>
  steps.map((step, index) => ({
    number: index + 4,
    at: 100 * index,
    event: { type: 'message.part', part: trajectory(step) },
  }));

describe('the tools that a run has called', () => {
  it('are one entry for a call and its result, with its input, its output and its time', () => {
    const events = logOf(
      { tool_name: 'look', tool_call_id: 'a', tool_input: { n: 1 } },
      { tool_name: 'look', tool_call_id: 'b', tool_input: { n: 2 } },
      { tool_name: 'look', tool_call_id: 'b', tool_error: 'Gone.' },
      { tool_name: 'look', tool_call_id: 'a', tool_output: { m: 1 } },
    );
    expect(toolListOf(events, 'completed', true)).toMatchObject([
      { begun: 4, running: false, time: 300, step: { tool_input: { n: 1 }, tool_output: { m: 1 } } },
      { begun: 5, running: false, time: 100, step: { tool_input: { n: 2 }, tool_error: 'Gone.' } },
    ]);
  });

  it('have the time that the agent measured, and otherwise none that the page has not seen', () => {
    const events = logOf(
      { tool_name: 'look', tool_input: {} },
      {
        tool_name: 'look',
        tool_output: {},
        started_at: '2026-01-01T00:00:00.000Z',
        ended_at: '2026-01-01T00:00:02.500Z',
      },
      { tool_name: 'read', tool_input: {} },
      { tool_name: 'read', tool_output: {} },
    );
    expect(toolListOf(events, 'completed', false).map(({ time }) => time)).toEqual([2_500, undefined]);
  });

  it('are running until their result, and failed where the run failed before', () => {
    const events = logOf({ tool_name: 'look', tool_input: {} }, { message: 'Thinks.' });
    expect(toolListOf(events, 'in-progress', true)).toMatchObject([{ running: true }]);
    const [ended] = toolListOf(events, 'failed', true);
    expect(ended).toMatchObject({ running: false, step: { tool_error: expect.stringContaining('ended') } });
    expect(toolListOf(events, 'completed', true)[0]?.step.tool_error).toBeUndefined();
  });
});
