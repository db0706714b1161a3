import { expect, it, vi } from 'vitest';
import { checkAgainst } from '../../../src/engine/agents/json-schema.ts';
import { endedResult } from '../../../src/protocols/mcp/tool-result.ts';
import type { Run } from '../../../src/schema/run.ts';

vi.mock('../../../src/engine/agents/processor-time.ts', () => ({ inProcessorTime: () => ({ state: 'starved' }) }));

it('the data of a completed run reaches the client where the machine has no time to check it', () => {
  const created_at = '2026-01-01T00:00:00.000Z';
  const run: Run = {
    run_id: '01900000-0000-7000-8000-000000000000',
    agent_name: 'counts',
    status: 'completed',
    output: [
      {
        role: 'agent/counts',
        parts: [{ content_type: 'application/json', content: '{"count":3}' }],
        created_at,
        completed_at: created_at,
      },
    ],
    created_at,
    finished_at: created_at,
  };
  expect(endedResult(run, { type: 'object' })).toMatchObject({ isError: false, structuredContent: { count: 3 } });
});

it('a value that the machine has no time to check is not called invalid, and may be sent again', () => {
  const check = () => checkAgainst({ type: 'object' }, { path: 'arguments', value: {}, chars: 2 });
  expect(check).toThrow('The machine has no processor time to check arguments; try again soon.');
  expect(check).toThrow(expect.objectContaining({ kind: 'too_busy' }));
});
