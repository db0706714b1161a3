import { describe, expect, it } from 'vitest';
import { modelMessages, modelRequest, modelTools } from '../../src/core/model-messages.ts';

const asked = { role: 'user', parts: [{ type: 'text', content: 'Oslo?' }] };
const call = { type: 'tool_call', id: 'c1', name: 'weather', arguments: { city: 'Oslo' } };
const called = { role: 'assistant', parts: [call] };
const told = { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: { degrees: 7 } }] };
const answered = { role: 'assistant', parts: [{ type: 'text', content: 'Cold.' }] };

const args = '{"city":"Oslo"}';
const result = '{"degrees":7}';

/** One conversation, in the form of each library. */
const forms: Readonly<Record<string, readonly unknown[]>> = {
  'OpenAI’s chats': [
    { role: 'user', content: 'Oslo?' },
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: args } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: result },
    { role: 'assistant', content: 'Cold.' },
  ],
  'OpenAI’s Responses': [
    { role: 'user', content: [{ type: 'input_text', text: 'Oslo?' }] },
    { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'weather', arguments: args },
    { type: 'function_call_output', call_id: 'c1', output: result },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Cold.', annotations: [] }] },
  ],
  'the OpenAI Agents SDK': [
    { type: 'message', role: 'user', content: 'Oslo?' },
    { type: 'function_call', callId: 'c1', name: 'weather', arguments: args, status: 'completed' },
    { type: 'function_call_result', callId: 'c1', output: { type: 'text', text: result } },
    { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Cold.' }] },
  ],
  Anthropic: [
    { role: 'user', content: 'Oslo?' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'weather', input: { city: 'Oslo' } }] },
    { role: 'tool', content: [{ type: 'tool_result', tool_use_id: 'c1', content: result }] },
    { role: 'assistant', content: [{ type: 'text', text: 'Cold.' }] },
  ],
  'the AI SDK': [
    { role: 'user', content: [{ type: 'text', text: 'Oslo?' }] },
    {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input: { city: 'Oslo' } }],
    },
    {
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: 'c1', output: { type: 'json', value: { degrees: 7 } } }],
    },
    { role: 'assistant', content: 'Cold.' },
  ],
  LangChain: [
    { type: 'human', content: 'Oslo?' },
    { type: 'ai', content: '', tool_calls: [{ id: 'c1', name: 'weather', args: { city: 'Oslo' } }] },
    { type: 'tool', tool_call_id: 'c1', content: result },
    { type: 'ai', content: 'Cold.' },
  ],
};

describe('the messages of a model', () => {
  it.each(Object.entries(forms))('have one form, whichever library they are from: %s', (_, messages) => {
    expect(modelMessages(messages)).toEqual([asked, called, told, answered]);
  });

  it('are those of Gemini, whose calls have no id', () => {
    const contents = [
      { role: 'user', parts: [{ text: 'Oslo?' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] },
      { role: 'model', parts: [{ functionCall: { name: 'weather', args: { city: 'Oslo' } } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'weather', response: { degrees: 7 } } }] },
    ];
    const tools = [
      { functionDeclarations: [{ name: 'weather', description: 'Tells.', parameters: { type: 'object' } }] },
    ];
    expect(modelRequest({ systemInstruction: { parts: [{ text: 'Be brief.' }] }, contents, tools })).toEqual({
      input: [
        { role: 'system', parts: [{ type: 'text', content: 'Be brief.' }] },
        { role: 'user', parts: [...asked.parts, { type: 'blob', mime_type: 'image/png' }] },
        { role: 'assistant', parts: [{ type: 'tool_call', name: 'weather', arguments: { city: 'Oslo' } }] },
        { role: 'user', parts: [{ type: 'tool_call_response', name: 'weather', response: { degrees: 7 } }] },
      ],
      tools: [{ name: 'weather', description: 'Tells.', parameters: { type: 'object' } }],
    });
  });

  it('have files by their address, and of those with their bytes the type alone', () => {
    const content = [
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      { type: 'input_image', image_url: 'data:image/gif;base64,AAAA' },
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'AAAA' } },
      { type: 'file', data: new Uint8Array(8), mediaType: 'application/pdf' },
      { type: 'file', data: new URL('https://example.com/a.pdf'), mediaType: 'application/pdf' },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
    ];
    expect(modelMessages([{ role: 'user', content }])[0]?.parts).toEqual([
      { type: 'blob', mime_type: 'image/png' },
      { type: 'uri', uri: 'https://example.com/a.png' },
      { type: 'blob', mime_type: 'image/gif' },
      { type: 'blob', mime_type: 'image/jpeg' },
      { type: 'blob', mime_type: 'application/pdf' },
      { type: 'uri', uri: 'https://example.com/a.pdf', mime_type: 'application/pdf' },
      { type: 'input_audio' },
    ]);
  });

  it('have results of tools without the bytes in them', () => {
    const output = [{ type: 'image', mimeType: 'image/png', data: 'AAAA' }, { url: 'data:image/png;base64,AAAA' }];
    expect(modelMessages([{ role: 'tool', tool_call_id: 'c1', content: output }])[0]?.parts).toEqual([
      {
        type: 'tool_call_response',
        id: 'c1',
        response: [{ type: 'image', mimeType: 'image/png' }, { url: 'data:image/png' }],
      },
    ]);
  });

  it('have the reasoning, and name what they do not know by its type', () => {
    const items = [
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Let me see.' }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.' },
          { type: 'redacted_thinking', data: 'x' },
        ],
      },
      { type: 'web_search_call', id: 'ws_1', status: 'completed' },
      7,
      null,
    ];
    expect(modelMessages(items)).toEqual([
      { role: 'assistant', parts: [{ type: 'reasoning', content: 'Let me see.' }] },
      { role: 'assistant', parts: [{ type: 'reasoning', content: 'Hm.' }, { type: 'blob' }] },
      { role: 'assistant', parts: [{ type: 'web_search_call' }] },
    ]);
  });

  it('are bounded, also where a result contains itself', () => {
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    const [message] = modelMessages([{ role: 'tool', tool_call_id: 'c1', content: loop }]);
    expect(JSON.stringify(message).length).toBeLessThan(1_000);
    const long = modelMessages([...Array(2_000).fill('x'), 'x'.repeat(200_000)]);
    expect([long.length, long.at(-1)?.parts[0]?.content?.length]).toEqual([1_000, 100_000]);
  });

  it('are those of a request’s body, with its instructions and tools', () => {
    const parameters = { type: 'object', properties: { city: { type: 'string' } } };
    const tool = { name: 'weather', parameters };
    const body = JSON.stringify({
      model: 'small',
      instructions: 'Be brief.',
      input: 'Oslo?',
      tools: [{ type: 'function', ...tool }],
    });
    const system = { role: 'system', parts: [{ type: 'text', content: 'Be brief.' }] };
    expect(modelRequest(body)).toEqual({ model: 'small', input: [system, asked], tools: [tool] });
    expect(modelTools([{ type: 'function', function: tool }, { type: 'web_search' }])).toEqual([
      tool,
      { name: 'web_search' },
    ]);
    const blocks = [{ type: 'text', text: 'Be brief.' }];
    expect(modelRequest({ system: blocks, messages: [{ role: 'user', content: 'Oslo?' }] })?.input).toEqual([
      system,
      asked,
    ]);
    expect(modelRequest({ other: true })).toBeUndefined();
  });
});
