import { expect, it } from 'vitest';
import type { Served } from '../../support/serve.ts';
import { twoNodes } from '../../support/takeovers.ts';
import { forms } from './agents.ts';
import { request } from './modern.ts';

const initialize = request('initialize', { protocolVersion: '2025-11-25', capabilities: { elicitation: {} } });
// A sentence ends with one full stop.
const why = /the reply to its question does not fit the form: .*age.*[^.]\.?$/;

it.each(['a', 'b'] as const)(
  'the result of a call says why its reply was refused, where another node took the reply; its stream is at node %s',
  async (name) => {
    const { a, b } = await twoNodes(forms, 'b', { protocols: ['mcp'] });
    const [streams, other]: [Served, Served] = name === 'a' ? [a, b] : [b, a];
    const { headers } = await streams.post('/mcp', initialize);
    const session = { 'mcp-session-id': headers.get('mcp-session-id') ?? '' };
    const call = await streams.post('/mcp', request('tools/call', { name: 'forms', arguments: { input: 'flat' } }, 2), {
      accept: 'text/event-stream',
      ...session,
    });
    let text = '';
    for await (const chunk of call.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const isAsked = text.includes('elicitation/create');
      text += chunk;
      if (isAsked || !text.includes('elicitation/create')) continue;
      const [, id] = /"id":"([^"]+:1)"/.exec(text) ?? [];
      const result = { action: 'accept', content: { name: 'Ada', age: -1 } };
      const refused = await other.post('/mcp', { jsonrpc: '2.0', id, result }, session);
      expect([refused.status, (await refused.json()).error.message]).toEqual([400, expect.stringMatching(why)]);
    }
    const result = JSON.parse(
      text
        .split('\n')
        .findLast((line) => line.startsWith('data: {'))
        ?.slice(6) ?? '',
    ).result;
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(why) }] });
    const run_id = result._meta['rivulet/run_id'];
    for (const node of [a, b]) {
      const { status, cancel_reason } = await (await node.get(`/runs/${run_id}`)).json();
      expect([status, cancel_reason]).toEqual(['cancelled', expect.stringMatching(why)]);
    }
  },
);
