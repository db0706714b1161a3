import { createOpenAI } from '@ai-sdk/openai';
import { generateText } from 'ai';
import type { ResponseInput } from 'openai/resources/responses/responses';
import { describe, expect, it } from 'vitest';
import { listenForClient } from './client.ts';

const { served, client } = await listenForClient();

/** What an agent gets of an input. */
async function mirrored(input: ResponseInput, more: object = {}) {
  const { output_text } = await client.responses.create({ model: 'mirror', input, ...more });
  return JSON.parse(output_text);
}

const user = { role: 'user', content: 'hi' } as const;

describe('items of other servers', () => {
  it('are calls of tools that the agent sees, with their results', async () => {
    const { input, request } = await mirrored([
      user,
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x', queries: [] } },
      { type: 'custom_tool_call', id: 'ctc_1', call_id: 'c1', name: 'grep', input: 'needle' },
      { type: 'custom_tool_call_output', call_id: 'c1', output: 'found' },
      { type: 'code_interpreter_call', id: 'ci_1', status: 'completed', code: '1', container_id: 'x', outputs: null },
      { role: 'user', content: 'and?' },
    ]);
    expect(input.map(({ role }: { role: string }) => role)).toEqual(['user', 'agent/mirror', 'user']);
    expect(input[1].parts.map(({ metadata }: { metadata: object }) => metadata)).toEqual([
      {
        kind: 'trajectory',
        tool_name: 'web_search',
        tool_input: { action: { type: 'search', query: 'x', queries: [] } },
      },
      { kind: 'trajectory', tool_name: 'grep', tool_input: { input: 'needle' }, tool_output: { output: 'found' } },
      {
        kind: 'trajectory',
        tool_name: 'code_interpreter',
        tool_input: { code: '1', container_id: 'x', outputs: null },
      },
    ]);
    expect(request.metadata.ignored_items).toBeUndefined();
  });

  it('are passed over where only their own server can read them, and named to the agent', async () => {
    const { input, request } = await mirrored([
      { type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAA' },
      { type: 'mcp_list_tools', id: 'mcpl_1', server_label: 'x', tools: [] },
      { type: 'mcp_list_tools', id: 'mcpl_2', server_label: 'y', tools: [] },
      { type: 'computer_call_output', call_id: 'elsewhere', output: { type: 'computer_screenshot' } },
      user,
    ]);
    expect(input.map(({ role }: { role: string }) => role)).toEqual(['user']);
    expect(request.metadata.ignored_items).toEqual(['compaction', 'mcp_list_tools', 'computer_call_output']);
  });

  it('of types that this server knows need their fields, and others a message beside them', async () => {
    const refused = async (input: unknown) => {
      const response = await served.post('/v1/responses', { model: 'mirror', input });
      return [response.status, (await response.json()).error.param];
    };
    expect(await refused([user, { type: 'function_call', name: 'x', arguments: '' }])).toEqual([
      400,
      'input[1].call_id',
    ]);
    expect(await refused([user, { type: 'item_reference' }])).toEqual([400, 'input[1].id']);
    expect(await refused([{ type: 'compaction', encrypted_content: '' }])).toEqual([400, 'input']);
    expect(await refused([{ type: '', role: 'user' }])).toEqual([400, 'input[0].type']);
  });
});

describe('a request with only a system or developer message', () => {
  const prompt = 'Write a title for this chat.';
  const asked = [{ role: 'user', parts: [{ content_type: 'text/plain', content: prompt }] }];

  it('is a run of its text, in Chat Completions', async () => {
    for (const role of ['system', 'developer'] as const) {
      const { choices } = await client.chat.completions.create({
        model: 'mirror',
        messages: [{ role, content: prompt }],
      });
      const { input, request } = JSON.parse(choices[0]?.message.content ?? '');
      expect([input, request.instructions]).toEqual([asked, undefined]);
    }
  });

  it('is a run of its text, in Responses; the instructions stay instructions', async () => {
    const { input, request } = await mirrored([{ role: 'developer', content: prompt }], { instructions: 'Be brief.' });
    expect([input, request.instructions]).toEqual([asked, 'Be brief.']);
  });

  it('is a run of its text, with the provider of the AI SDK', async () => {
    const provider = createOpenAI({ baseURL: `${served.url}/v1`, apiKey: 'none' });
    for (const model of [provider.chat('mirror'), provider('mirror')]) {
      const { text } = await generateText({
        model,
        allowSystemInMessages: true,
        messages: [{ role: 'system', content: prompt }],
      });
      expect(JSON.parse(text).input).toEqual(asked);
    }
  });
});
