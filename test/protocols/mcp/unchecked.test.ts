import { expect, it, vi } from 'vitest';
import { completedResult } from '../../../src/protocols/mcp/tool-result.ts';
import type { Run } from '../../../src/schema/run.ts';

vi.mock('../../../src/engine/processor-time.ts', () => ({ inProcessorTime: () => ({ state: 'starved' }) }));

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
  expect(completedResult(run, { type: 'object' })).toMatchObject({ isError: false, structuredContent: { count: 3 } });
});
