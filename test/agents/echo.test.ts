import { runAgent } from 'rivulet/testing';
import { describe, expect, it } from 'vitest';
import echo from '../../agents/echo.ts';

describe('echo', () => {
  it('returns each message that it gets, parts of every kind included', async () => {
    const picture = {
      content_type: 'image/png',
      content: 'iVBORw==',
      content_encoding: 'base64' as const,
      name: 'dot.png',
    };
    const input = [
      { role: 'user', parts: [{ content: 'Hello' }, picture] },
      { role: 'user', parts: [{ content: 'again' }] },
    ];
    const { run } = await runAgent(echo, input);
    expect(run).toMatchObject({
      status: 'completed',
      output: [
        { role: 'agent/echo', parts: [{ content_type: 'text/plain', content: 'Hello' }, picture] },
        { role: 'agent/echo', parts: [{ content_type: 'text/plain', content: 'again' }] },
      ],
    });
  });
});
