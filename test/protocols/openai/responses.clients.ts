import { once } from 'node:events';
import { connect } from 'node:net';
import type OpenAI from 'openai';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { describe, expect, it } from 'vitest';
import type { MessagePart } from '../../../src/index.ts';
import { all } from './agents.ts';
import { listenForClient } from './client.ts';

const { served, client } = await listenForClient();

const list = async (stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> => {
  const events: ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
};

const callOf = ({ output }: Pick<Response, 'output'>) => {
  const call = output.find((item) => item.type === 'function_call');
  if (call === undefined) throw new Error('the response has no call');
  return call;
};

const answerTo = (response: Pick<Response, 'output'>, output: string) =>
  ({ type: 'function_call_output', call_id: callOf(response).call_id, output }) as const;

describe('Responses, with the official client', () => {
  it('answers with text, and again by its id', async () => {
    const response = await client.responses.create({ model: 'echo', input: 'hello' });
    expect([response.status, response.output_text, response.model]).toEqual(['completed', 'hello', 'echo']);
    const again = await client.responses.retrieve(response.id);
    expect(again).toEqual({ ...response, output_text: again.output_text });
  });

  it('streams every kind of output, which the helper folds to the response itself', async () => {
    const stream = client.responses.stream({ model: 'everything', input: 'go' });
    const folded = await stream.finalResponse();
    const stored = await client.responses.retrieve(folded.id);
    expect(folded.output.map(({ type }) => type)).toEqual([
      'message',
      'reasoning',
      'mcp_call',
      'message',
      'image_generation_call',
      'message',
      'message',
    ]);
    expect(
      JSON.parse(JSON.stringify(folded.output), (key, value) => (key.startsWith('parsed') ? undefined : value)),
    ).toEqual(stored.output);
    expect(folded.output[3]).toMatchObject({
      content: [
        {
          text: 'It is "there".\n',
          annotations: [
            { type: 'url_citation', url: 'https://example.com/book', title: 'Book', start_index: 0, end_index: 14 },
          ],
        },
      ],
    });
    expect(folded.output[2]).toMatchObject({ name: 'look', arguments: '{"where":"book"}', output: '{"page":3}' });
    expect(folded.output[5]).toMatchObject({
      content: [
        {
          text: '\n\n[notes.txt](data:text/plain;base64,UGFnZSAz)\n\n\n\n![a(1).png](https://example.com/a%281%29.png)\n\n',
        },
      ],
    });
  });

  it('continues a stream after any number that it had', async () => {
    const stream = await client.responses.create({ model: 'everything', input: 'go', stream: true });
    const events = await list(stream);
    const created = events[0];
    if (created?.type !== 'response.created') throw new Error('expected the response first');
    const { id } = created.response;
    for (const [index, { sequence_number }] of events.entries()) {
      // The cuts elsewhere are at all places.
      if (index % 5 !== 0 && index < events.length - 2) continue;
      const rest = await client.responses.retrieve(id, { stream: true, starting_after: sequence_number });
      expect(await list(rest)).toEqual(events.slice(index + 1));
    }
    expect(await list(await client.responses.retrieve(id, { stream: true }))).toEqual(events);
    const helper = client.responses.stream({ response_id: id, starting_after: 40 });
    expect((await helper.finalResponse()).status).toBe('completed');
  });

  it('asks by a call, whose output resumes the run as another response', async () => {
    const first = await client.responses.create({ model: 'twice', input: 'go' });
    expect([first.status, first.output_text, callOf(first).name]).toEqual(['completed', 'a', 'ask_user']);
    expect(JSON.parse(callOf(first).arguments)).toEqual({ message: 'First?' });
    const second = await client.responses
      .stream({ model: 'twice', previous_response_id: first.id, input: [answerTo(first, 'one')] })
      .finalResponse();
    expect([second.previous_response_id, second.output_text]).toEqual([first.id, 'b one']);
    const third = await client.responses.create({
      model: 'twice',
      previous_response_id: second.id,
      input: [answerTo(second, 'two')],
      background: true,
    });
    expect(third.status).toBe('in_progress');
    const events = await list(await client.responses.retrieve(third.id, { stream: true }));
    expect(events.at(-1)).toMatchObject({
      type: 'response.completed',
      response: { id: third.id, output: [{ type: 'message' }] },
    });
    // Each keeps its own output.
    const ids = [first.id, second.id, third.id];
    const texts = await Promise.all(ids.map(async (id) => (await client.responses.retrieve(id)).output_text));
    expect(texts).toEqual(['a', 'b one', 'c two']);
    const items = await client.responses.inputItems.list(second.id);
    expect(items.data).toMatchObject([{ type: 'function_call_output', call_id: callOf(first).call_id }]);
  });

  it('begins the next response with what the agent has said while it awaited', async () => {
    const asked = await client.responses.create({ model: 'busy', input: 'go' });
    const stream = client.responses.stream({
      model: 'busy',
      previous_response_id: asked.id,
      input: [answerTo(asked, 'yes')],
    });
    let text = '';
    stream.on('response.output_text.delta', ({ delta }) => {
      text += delta;
    });
    const next = await stream.finalResponse();
    expect(next.output_text).toBe(text);
    expect(asked.output_text + text).toMatch(/still .*here\. /);
    expect(text).toContain('Thanks.');
  });

  it('asks by ask_user for a tool that the client has not, and goes on with the answer', async () => {
    const asked = await client.responses.create({ model: 'weather', input: 'How is the weather?' });
    const { name, arguments: args, call_id } = callOf(asked);
    expect([name, JSON.parse(args)]).toEqual(['ask_user', { message: 'The weather, please.' }]);
    const input = [{ type: 'function_call_output' as const, call_id, output: 'sunny' }];
    const { output_text } = await client.responses.create({ model: 'weather', previous_response_id: asked.id, input });
    expect(output_text).toBe('It is sunny.');
  });

  it('asks the client to run its own tool, also without an id of the response before', async () => {
    const tools = [
      {
        type: 'function' as const,
        name: 'get_weather',
        description: 'Weather',
        parameters: { type: 'object' },
        strict: null,
      },
    ];
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'How is the weather?' }];
    const asked = await client.responses.create({ model: 'weather', input, tools });
    expect([callOf(asked).name, callOf(asked).arguments]).toEqual(['get_weather', '{"city":"Oslo"}']);
    const answered = await client.responses.create({
      model: 'weather',
      input: [...input, callOf(asked), answerTo(asked, 'sunny')],
      tools,
    });
    expect([answered.output_text, answered.id.startsWith(asked.id)]).toEqual(['It is sunny.', true]);
  });

  it('shows an agent the request: instructions, tools and settings', async () => {
    const { output_text } = await client.responses.create({
      model: 'mirror',
      instructions: 'Be brief.',
      input: [
        { role: 'developer', content: 'Say please.' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Hi' },
            { type: 'input_image', image_url: 'data:image/png;base64,aGk=', detail: 'auto' },
          ],
        },
        { role: 'assistant', content: 'Hello' },
        { type: 'function_call', call_id: 'c1', name: 'add', arguments: '{"a":1}' },
        { type: 'function_call_output', call_id: 'c1', output: '2' },
        { role: 'user', content: [{ type: 'input_file', file_url: 'https://example.com/a.pdf' }] },
      ],
      temperature: 0.5,
      metadata: { topic: 'tests' },
      reasoning: { effort: 'low' },
      tools: [{ type: 'function', name: 'add', parameters: { type: 'object' }, strict: false }],
    });
    const { input, request } = JSON.parse(output_text);
    expect(request).toEqual({
      protocol: 'openai',
      instructions: 'Be brief.\n\nSay please.',
      metadata: { temperature: 0.5, metadata: { topic: 'tests' }, reasoning: { effort: 'low' } },
      tools: [{ name: 'add', parameters: { type: 'object' } }],
    });
    expect(input).toEqual([
      {
        role: 'user',
        parts: [
          { content_type: 'text/plain', content: 'Hi' },
          { content_type: 'image/png', content_encoding: 'base64', content: 'aGk=' },
        ],
      },
      {
        role: 'agent/mirror',
        parts: [
          { content_type: 'text/plain', content: 'Hello' },
          {
            content_type: 'text/plain',
            metadata: { kind: 'trajectory', tool_name: 'add', tool_input: { a: 1 }, tool_output: { output: '2' } },
          },
        ],
      },
      { role: 'user', parts: [{ content_type: 'application/pdf', content_url: 'https://example.com/a.pdf' }] },
    ]);
  });

  it('keeps the history of a chain, and of a conversation, on the server', async () => {
    const first = await client.responses.create({ model: 'remembers', input: 'one' });
    const second = await client.responses.create({ model: 'remembers', input: 'two', previous_response_id: first.id });
    expect(second.output_text).toBe('before: one, before: ');
    expect(second.previous_response_id).toBe(first.id);
    const conversation = 'the client’s own id';
    await client.responses.create({ model: 'remembers', input: 'three', conversation });
    const talked = await client.responses.create({
      model: 'remembers',
      input: 'four',
      conversation: { id: conversation },
    });
    expect([talked.output_text, talked.conversation]).toEqual(['before: three, before: ', { id: conversation }]);
  });

  it('runs in the background, and cancels', async () => {
    const begun = await client.responses.create({ model: 'never', input: 'go', background: true });
    expect(['queued', 'in_progress']).toContain(begun.status);
    const watched = client.responses.stream({ response_id: begun.id });
    const cancelled = await client.responses.cancel(begun.id);
    expect([cancelled.id, cancelled.status]).toEqual([begun.id, 'cancelled']);
    expect((await watched.finalResponse()).status).toBe('cancelled');
    // Cancelling it again changes nothing.
    expect((await client.responses.cancel(begun.id)).status).toBe('cancelled');
  });

  it('goes on after a response that was cancelled, and one that failed, with what there was of them', async () => {
    const stopped = await client.responses.create({ model: 'never', input: 'one', background: true });
    await client.responses.cancel(stopped.id);
    const failed = await client.responses.create({ model: 'broken', input: 'two', previous_response_id: stopped.id });
    const next = await client.responses.create({ model: 'remembers', input: 'three', previous_response_id: failed.id });
    expect([failed.status, next.output_text]).toEqual(['failed', 'before: one, , two, half ']);
  });

  it('takes the output of a call by the conversation alone, and from no other', async () => {
    const conversation = 'a conversation with a question';
    const asked = await client.responses.create({ model: 'twice', input: 'hi', conversation });
    const answer = (response: Response, output: string, more: object = {}) =>
      client.responses.create({ model: 'twice', conversation, input: [answerTo(response, output)], ...more });
    await expect(answer(asked, 'no', { conversation: 'another' })).rejects.toMatchObject({
      status: 400,
      param: 'input',
    });
    await expect(answer(asked, 'no', { model: 'echo' })).rejects.toMatchObject({ status: 400, param: 'model' });
    const second = await answer(asked, 'one');
    expect([second.output_text, second.conversation?.id]).toEqual(['b one', conversation]);
    await expect(answer(asked, 'late')).rejects.toMatchObject({ status: 400 });
    const last = await answer(second, 'two');
    expect([last.output_text, last.previous_response_id]).toEqual(['c two', second.id]);
    await expect(answer(second, 'late')).rejects.toMatchObject({ status: 409, code: 'not_awaiting' });
    const { output_text } = await client.responses.create({ model: 'remembers', input: 'and?', conversation });
    expect(output_text).toBe('before: hi, a, First?, one, b one, Second?, two, c two');
  });

  it('lets a conversation go on after a question that was cancelled', async () => {
    const asked = await client.responses.create({ model: 'ask', input: 'go' });
    // It was complete, and stays so; its run is cancelled.
    expect((await client.responses.cancel(asked.id)).status).toBe('completed');
    const late = { model: 'ask', previous_response_id: asked.id, input: [answerTo(asked, 'yes')] };
    await expect(client.responses.create(late)).rejects.toMatchObject({ status: 409, code: 'not_awaiting' });
    const next = await client.responses.create({ model: 'echo', previous_response_id: asked.id, input: 'next' });
    expect(next.output_text).toBe('next');
  });

  it('takes a reference to an item instead of the item', async () => {
    const { output, id } = await client.responses.create({ model: 'everything', input: 'go' });
    const references = output.flatMap((item) =>
      item.id === undefined || item.id === null ? [] : [{ type: 'item_reference' as const, id: item.id }],
    );
    const input = [...references, { role: 'user' as const, content: 'and?' }];
    const { output_text } = await client.responses.create({ model: 'mirror', input });
    const [before, after] = JSON.parse(output_text).input;
    expect([before.role, after.parts[0].content]).toEqual(['agent/mirror', 'and?']);
    expect(before.parts.map(({ metadata, content }: MessagePart) => metadata?.kind ?? content)).toEqual([
      'Let me look. ',
      'trajectory',
      'trajectory',
      'It is "there".\n',
      'iVBORwAB',
      expect.stringContaining('notes.txt'),
      'Bye.',
    ]);
    const unknown = [{ type: 'item_reference' as const, id: `msg_${id.slice('resp_'.length)}_1` }];
    await expect(client.responses.create({ model: 'mirror', input: unknown })).rejects.toMatchObject({ status: 400 });
  });

  it('takes its own output back, with the nulls of OpenAI’s items', async () => {
    const { output } = await client.responses.create({ model: 'steps', input: 'go' });
    expect(output[0]).toMatchObject({ type: 'mcp_call', output: null, error: null });
    // The library does not know `content: null`, which OpenAI sends.
    const thought = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], content: null };
    const input = [...output, JSON.parse(JSON.stringify(thought)), { role: 'user' as const, content: 'and?' }];
    const { output_text } = await client.responses.create({ model: 'mirror', input });
    const [before] = JSON.parse(output_text).input;
    expect(before.parts.map(({ metadata }: MessagePart) => metadata)).toEqual([
      { kind: 'trajectory', tool_name: 'look', tool_input: {} },
      { kind: 'trajectory', message: 'Hm.' },
    ]);
  });

  it('reports a failure as the response’s, in each way to read it', async () => {
    const error = { code: 'server_error', message: 'It broke.', type: 'server_error' };
    const created = await client.responses.create({ model: 'broken', input: 'go' });
    expect([created.status, created.error, created.output_text]).toEqual(['failed', error, 'half ']);
    const streamed = await client.responses.stream({ model: 'broken', input: 'go' }).finalResponse();
    expect([streamed.status, streamed.error, streamed.output_text]).toEqual(['failed', error, 'half ']);
  });

  it('counts what the agent reports', async () => {
    const { usage } = await client.responses.create({ model: 'counted', input: 'go' });
    expect(usage).toMatchObject({ input_tokens: 3, output_tokens: 4, total_tokens: 7 });
  });

  it('lists the input, in pages', async () => {
    const { id } = await client.responses.create({
      model: 'echo',
      input: ['one', 'two', 'three'].map((content) => ({ role: 'user' as const, content })),
    });
    const texts: unknown[] = [];
    for await (const item of client.responses.inputItems.list(id, { limit: 2, order: 'asc' })) {
      if (item.type === 'message') texts.push(item.content);
    }
    expect(texts).toMatchObject([[{ text: 'one' }], [{ text: 'two' }], [{ text: 'three' }]]);
  });

  it('deletes a response, and one that is not to be stored', async () => {
    const { id } = await client.responses.create({ model: 'echo', input: 'hi' });
    expect(await client.responses.delete(id)).toEqual({ id, object: 'response', deleted: true });
    await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404, code: 'response_not_found' });
    const kept = await client.responses.create({ model: 'echo', input: 'hi', store: false });
    expect(kept).toMatchObject({ output_text: 'hi', store: false });
    await expect.poll(() => client.responses.retrieve(kept.id).catch((error) => error.status)).toBe(404);
  });

  it('keeps a response that is not to be stored, where the client has left in the middle of the answer', async () => {
    const closed = new Promise((resolve) => {
      served.app.server.once('connection', (connection) => connection.once('close', resolve));
    });
    const socket = connect(Number(new URL(served.url).port), '127.0.0.1');
    // More than the buffers of a connection take.
    const body = JSON.stringify({ model: 'echo', input: 'x'.repeat(9_000_000), store: false });
    const head = `POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    const [first] = await once(socket, 'data');
    socket.destroy();
    await closed;
    const run_id = /run-id: (\S+)/i.exec(String(first))?.[1];
    expect(await client.responses.retrieve(`resp_${run_id}`)).toMatchObject({ status: 'completed', store: false });
  });

  it('refuses to delete a response that is at work, and the client does not repeat it', async () => {
    const { id } = await client.responses.create({ model: 'never', input: 'hi', background: true });
    const refused = await served.app.inject({ method: 'DELETE', url: `/v1/responses/${id}` });
    expect([refused.statusCode, refused.headers['x-should-retry']]).toEqual([409, 'false']);
    await client.responses.cancel(id);
  });

  it('lists the agents as models', async () => {
    const models = (await client.models.list()).data.map(({ id }) => id);
    expect(models).toEqual(all.map(({ manifest }) => manifest.name).sort());
    expect(await client.models.retrieve('echo')).toMatchObject({ id: 'echo', object: 'model', owned_by: 'rivulet' });
    await expect(client.models.retrieve('unknown')).rejects.toMatchObject({ status: 404, code: 'model_not_found' });
  });
});
