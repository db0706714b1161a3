import type { Run } from 'rivulet';
import { describe, expect, it } from 'vitest';
import echo from '../../agents/echo.ts';
import { serve } from '../support/serve.ts';

describe('echo', () => {
  it('returns each message that it gets, parts of every kind included', async () => {
    const served = await serve([echo]);
    const picture = { content_type: 'image/png', content: 'iVBORw==', content_encoding: 'base64', name: 'dot.png' };
    const input = [
      { role: 'user', parts: [{ content: 'Hello' }, picture] },
      { role: 'user', parts: [{ content: 'again' }] },
    ];
    const run: Run = await (await served.post('/runs', { agent_name: 'echo', input })).json();
    expect(run).toMatchObject({
      status: 'completed',
      output: [
        { role: 'agent/echo', parts: [{ content_type: 'text/plain', content: 'Hello' }, picture] },
        { role: 'agent/echo', parts: [{ content_type: 'text/plain', content: 'again' }] },
      ],
    });
  });
});
