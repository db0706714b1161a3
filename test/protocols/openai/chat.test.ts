import type { ChatCompletionMessageParam, ChatCompletionTool } from 'openai/resources/chat/completions';
import { from, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { citation } from '../../../src/index.ts';
import { agent } from '../../support/agents.ts';
import { finished, serve } from '../../support/serve.ts';
import { listenForClient } from './client.ts';

const { served, client } = await listenForClient();

const user = (content: string): ChatCompletionMessageParam => ({ role: 'user', content });
const getWeather: ChatCompletionTool = {
  type: 'function',
  function: { name: 'get_weather', description: 'Weather', parameters: { type: 'object' } },
};

/** The status of the run that an answer names. */
async function statusOf(response: Response): Promise<string> {
  return (await (await served.get(`/runs/${response.headers.get('run-id')}`)).json()).status;
}

describe('Chat Completions, with the official client', () => {
  it('answers with the whole text, and in a stream that the helper folds to the same', async () => {
    const request = { model: 'everything', messages: [user('go')] };
    const whole = await client.chat.completions.create(request);
    const streamed = await client.chat.completions.stream(request).finalChatCompletion();
    const [said, folded] = [whole, streamed].map(({ choices }) => choices[0]);
    expect(said?.message.content).toBe(
      'Let me look. It is "there".\n\n\n![dot.png](data:image/png;base64,iVBORwAB)\n\n' +
        '\n\n[notes.txt](data:text/plain;base64,UGFnZSAz)\n\n\n\n![a(1).png](https://example.com/a%281%29.png)\n\n\n\nBye.',
    );
    expect(folded?.message.content).toBe(said?.message.content);
    expect([said?.finish_reason, folded?.finish_reason]).toEqual(['stop', 'stop']);
    expect(said?.message).toMatchObject({
      reasoning_content: 'It may be in the book.\nlook {"where":"book"}\n',
      annotations: [
        {
          type: 'url_citation',
          url_citation: { url: 'https://example.com/book', title: 'Book', start_index: 13, end_index: 27 },
        },
      ],
    });
  });

  it('counts from the text of its message where a citation comes before it', async () => {
    const source = citation({ url: 'https://example.com/', start_index: 0, end_index: 4 });
    const messages = [[{ content: 'One.' }], [source, { content: 'Two.' }]].map((parts) => ({ role: 'agent', parts }));
    const own = await serve([agent('sources', () => from(messages))]);
    const { choices } = await (
      await own.post('/v1/chat/completions', { model: 'sources', messages: [user('go')] })
    ).json();
    const { content, annotations } = choices[0].message;
    const { start_index, end_index } = annotations[0].url_citation;
    expect([content, content.slice(start_index, end_index)]).toEqual(['One.\n\nTwo.', 'Two.']);
  });

  it('has a part with an empty name as text', async () => {
    const own = await serve([agent('unnamed', () => of({ content: 'Hello', name: '' }))]);
    const asked = { model: 'unnamed', messages: [user('go')] };
    const { choices } = await (await own.post('/v1/chat/completions', asked)).json();
    expect(choices[0].message.content).toBe('Hello');
  });

  it('sends the usage in a last chunk, where the client asks for it', async () => {
    const request = { model: 'counted', messages: [user('go')], stream: true as const };
    const usages: unknown[] = [];
    const choices: number[] = [];
    for await (const chunk of await client.chat.completions.create({
      ...request,
      stream_options: { include_usage: true },
    })) {
      usages.push(chunk.usage);
      choices.push(chunk.choices.length);
    }
    expect(usages.slice(0, -1).every((usage) => usage === null)).toBe(true);
    expect(usages.at(-1)).toEqual({ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 });
    expect(choices.at(-1)).toBe(0);
    for await (const chunk of await client.chat.completions.create(request)) expect(chunk.usage).toBeUndefined();
    const whole = await client.chat.completions.create({ model: 'counted', messages: [user('go')] });
    expect(whole.usage).toEqual({ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 });
  });

  it.each([false, true])('asks for a tool of the client, and goes on with its output; stream: %s', async (stream) => {
    const request = { model: 'weather', tools: [getWeather] };
    const complete = (messages: ChatCompletionMessageParam[]) =>
      stream
        ? client.chat.completions.stream({ ...request, messages }).finalChatCompletion()
        : client.chat.completions.create({ ...request, messages });
    const messages = [user('How is the weather?')];
    const asked = (await complete(messages)).choices[0];
    expect([asked?.finish_reason, asked?.message.content]).toEqual(['tool_calls', 'One moment. ']);
    const call = asked?.message.tool_calls?.[0];
    expect(call).toMatchObject({ type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } });
    if (asked === undefined || call === undefined) return;
    const tool = { role: 'tool', tool_call_id: call.id, content: 'sunny' } as const;
    const answered = await complete([...messages, { ...asked.message, tool_calls: [call] }, tool]);
    expect([answered.choices[0]?.message.content, answered.choices[0]?.finish_reason]).toEqual([
      'It is sunny.',
      'stop',
    ]);
    // The run is over: the same list is another run, with its whole history.
    const again = await complete([...messages, { ...asked.message, tool_calls: [call] }, tool]);
    expect(again.choices[0]?.finish_reason).toBe('tool_calls');
  });

  it('asks a question by the tool ask_user, where the client has one', async () => {
    const tools: ChatCompletionTool[] = [{ type: 'function', function: { name: 'ask_user' } }];
    const asked = await client.chat.completions.create({ model: 'approval', messages: [user('go')], tools });
    const call = asked.choices[0]?.message.tool_calls?.[0];
    if (call?.type !== 'function') throw new Error('expected a call');
    expect(JSON.parse(call.function.arguments)).toEqual({ message: 'May I?', schema: { type: 'boolean' } });
  });

  it('asks a question in its text for a tool that the client has not', async () => {
    const tools: ChatCompletionTool[] = [{ type: 'function', function: { name: 'other' } }];
    const asked = await client.chat.completions.create({ model: 'weather', messages: [user('go')], tools });
    const [choice] = asked.choices;
    expect([choice?.finish_reason, choice?.message.tool_calls, choice?.message.content]).toEqual([
      'stop',
      undefined,
      'One moment. \n\nThe weather, please.',
    ]);
  });

  it('gives the whole list to another agent, where the client has changed it', async () => {
    const tools = [getWeather];
    const asked = await client.chat.completions.create({ model: 'weather', messages: [user('go')], tools });
    const message = asked.choices[0]?.message;
    const call = message?.tool_calls?.[0];
    if (message === undefined || call === undefined) throw new Error('expected a call');
    const messages = [user('go'), message, { role: 'tool' as const, tool_call_id: call.id, content: 'sunny' }];
    const { model, choices } = await client.chat.completions.create({ model: 'mirror', messages });
    expect([model, JSON.parse(choices[0]?.message.content ?? '').input]).toMatchObject([
      'mirror',
      [{ role: 'user' }, { role: 'agent/mirror' }],
    ]);
  });

  it('asks a question in its text elsewhere, and cancels the run that no answer can reach', async () => {
    const body = { model: 'ask', messages: [user('go')] };
    for (const stream of [false, true]) {
      const response = await served.post('/v1/chat/completions', { ...body, stream });
      const text = await response.text();
      expect(text).toContain(stream ? '"content":"Well?"' : 'before. \\n\\nWell?');
      expect((await finished(served, response.headers.get('run-id') ?? '')).status).toBe('cancelled');
    }
    const kept = await served.post('/v1/chat/completions', body, { 'On-Disconnect': 'continue' });
    await kept.text();
    expect(await statusOf(kept)).toBe('awaiting');
  });

  it('cancels the run of a client that disconnects', async () => {
    const abort = new AbortController();
    const stream = await client.chat.completions
      .create({ model: 'never', messages: [user('go')], stream: true }, { signal: abort.signal })
      .withResponse();
    abort.abort();
    await expect.poll(() => statusOf(stream.response)).toBe('cancelled');
  });

  it('reports a failure as an error, which the client throws', async () => {
    const request = { model: 'broken', messages: [user('go')] };
    await expect(client.chat.completions.create(request)).rejects.toMatchObject({
      status: 500,
      error: { message: 'It broke.', type: 'server_error', code: 'server_error', param: null },
    });
    await expect(client.chat.completions.stream(request).finalChatCompletion()).rejects.toThrow('It broke.');
  });

  it('gives the agent the whole list, and its system messages as instructions', async () => {
    const completion = await client.chat.completions.create({
      model: 'mirror',
      messages: [
        { role: 'system', content: 'Be brief.' },
        user('one'),
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: '{"sum":2}' },
        { role: 'assistant', content: 'two' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'three' },
            { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
            { type: 'input_audio', input_audio: { data: 'aGk=', format: 'mp3' } },
            { type: 'file', file: { file_data: 'data:application/pdf;base64,aGk=', filename: 'a.pdf' } },
            { type: 'file', file: { file_data: 'data:text/csv,a%2Cb', filename: 'a.csv' } },
          ],
        },
      ],
      temperature: 0,
      response_format: { type: 'json_object' },
      tools: [getWeather],
    });
    const { input, request } = JSON.parse(completion.choices[0]?.message.content ?? '');
    expect(request).toEqual({
      protocol: 'openai',
      instructions: 'Be brief.',
      metadata: { temperature: 0, response_format: { type: 'json_object' } },
      tools: [{ name: 'get_weather', description: 'Weather', parameters: { type: 'object' } }],
    });
    expect(input).toEqual([
      { role: 'user', parts: [{ content_type: 'text/plain', content: 'one' }] },
      {
        role: 'agent/mirror',
        parts: [
          {
            content_type: 'text/plain',
            metadata: { kind: 'trajectory', tool_name: 'add', tool_input: { a: 1 }, tool_output: { sum: 2 } },
          },
          { content_type: 'text/plain', content: 'two' },
        ],
      },
      {
        role: 'user',
        parts: [
          { content_type: 'text/plain', content: 'three' },
          { content_type: 'image/png', content_url: 'https://example.com/a.png' },
          { content_type: 'audio/mpeg', content_encoding: 'base64', content: 'aGk=' },
          { name: 'a.pdf', content_type: 'application/pdf', content_encoding: 'base64', content: 'aGk=' },
          { name: 'a.csv', content_type: 'text/csv', content: 'a,b' },
        ],
      },
    ]);
  });
});
