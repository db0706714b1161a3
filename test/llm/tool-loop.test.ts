import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Type } from '@sinclair/typebox';
import { createRuntime, defineAgent, textOf } from 'rivulet';
import { chatModel, type Tool, type ToolLoopOptions, tool, toolLoop, toolOf } from 'rivulet/llm';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Answer, type LlmRequest, startLlm } from '../agents/llm.ts';
import { agent } from '../support/agents.ts';

const weather = tool({
  name: 'weather',
  description: 'The weather in a city.',
  input: Type.Object({ city: Type.String({ minLength: 2 }) }),
  run: ({ city }) => ({ city, degrees: 7 }),
});

const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: Type.Object({ amount: Type.Number() }),
  approval: ({ amount }) => amount > 10,
  run: ({ amount }) => `Paid ${amount}.`,
});

/** A model that calls a tool, and then says what it was told. */
const calling =
  (name: string, input: unknown) =>
  ({ body }: LlmRequest): Answer => {
    const last = body.messages.at(-1);
    return last?.role === 'tool' ? [`It says: ${last.content}`] : ['Let me see. ', { tool: name, input }];
  };

/** An agent with tools, and the requests that its model got. */
async function looping(script: (request: LlmRequest) => Answer, options: Partial<ToolLoopOptions>) {
  const llm = await startLlm(script);
  onTestFinished(() => llm.close());
  const model = chatModel({ model: 'small', baseURL: llm.url, request: { temperature: 0 } });
  const loop = defineAgent({ name: 'loop', description: 'Loops.' }, toolLoop({ model, ...options }), { durable: true });
  return { loop, requests: llm.requests };
}

const steps = (parts: Awaited<ReturnType<typeof runAgent>>['parts']) =>
  parts.flatMap(({ metadata }) => (metadata?.kind === 'trajectory' ? [metadata] : []));

describe('an agent with a tool loop', () => {
  it('tells the model its instructions and tools, and the results of calls', async () => {
    const { loop, requests } = await looping(calling('weather', { city: 'Oslo' }), {
      instructions: ({ agent_name }) => `You are ${agent_name}.`,
      tools: [weather],
    });
    const { text, parts, run } = await runAgent(loop, 'How is Oslo?');
    expect(text).toContain('It says: {"city":"Oslo","degrees":7}');
    expect(steps(parts)).toMatchObject([
      { tool_name: 'weather', tool_input: { city: 'Oslo' } },
      { tool_name: 'weather', tool_output: { city: 'Oslo', degrees: 7 } },
    ]);
    expect(run.usage).toEqual({ tokens: 2 + 2 + 4 + 1, input_tokens: 6, output_tokens: 3 });
    const told = requests.map(({ body }) => body);
    expect(told[0]).toMatchObject({ model: 'small', temperature: 0, stream: true });
    expect(told[0]?.tools).toEqual([
      {
        type: 'function',
        function: {
          name: 'weather',
          description: 'The weather in a city.',
          parameters: {
            type: 'object',
            required: ['city'],
            properties: { city: { type: 'string', minLength: 2 } },
          },
        },
      },
    ]);
    expect(told[1]?.messages).toEqual([
      { role: 'system', content: 'You are loop.' },
      { role: 'user', content: 'How is Oslo?' },
      {
        role: 'assistant',
        content: 'Let me see. ',
        tool_calls: [{ id: 'call_0', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
      },
      { role: 'tool', tool_call_id: 'call_0', content: '{"city":"Oslo","degrees":7}' },
    ]);
  });

  it.each([
    ['an input that does not fit', 'weather', { city: 'O' }, 'arguments.city'],
    ['an input that is no object', 'weather', '[1]', 'The arguments are not a JSON object.'],
    ['an input that is no JSON', 'weather', '{"expr', 'The arguments are not a JSON object.'],
    ['a tool that is not there', 'wether', { city: 'Oslo' }, 'There is no tool wether.'],
  ])('tells the model of %s, and shows it', async (_, name, input, problem) => {
    const { loop } = await looping(calling(name, input), { tools: [weather] });
    const { text, parts, run } = await runAgent(loop, 'Go');
    expect(run.status).toBe('completed');
    expect(text).toContain(`It says: Error: `);
    expect(text).toContain(problem);
    expect(steps(parts).at(-1)).toMatchObject({ tool_name: name, tool_error: expect.stringContaining(problem) });
  });

  it('tells the model that a tool has failed', async () => {
    const broken = tool({ ...weather, input: Type.Object({}), run: () => Promise.reject(new Error('No network.')) });
    const { loop } = await looping(calling('weather', {}), { tools: [broken] });
    const { text, parts } = await runAgent(loop, 'Go');
    expect(text).toContain('It says: Error: No network.');
    expect(steps(parts).at(-1)).toMatchObject({ tool_error: 'No network.' });
  });

  it('asks a person before a call that needs an approval', async () => {
    const { loop, requests } = await looping(calling('pay', { amount: 12 }), { tools: [pay] });
    const allowed = await runAgent(loop, 'Pay', { answers: ['true'] });
    expect(allowed.questions).toHaveLength(1);
    expect(allowed.text).toContain('It says: Paid 12.');
    const denied = await runAgent(loop, 'Pay', { answers: ['false'] });
    expect(denied.text).toContain('It says: Error: The user did not allow this call.');
    expect(steps(denied.parts)).toMatchObject([
      { tool_name: 'pay', tool_input: { amount: 12 } },
      { tool_name: 'pay', tool_output: { denied: true } },
    ]);
    expect(requests).toHaveLength(4);
  });

  it('asks no person where the input needs no approval', async () => {
    const { loop } = await looping(calling('pay', { amount: 3 }), { tools: [pay] });
    const { questions, text } = await runAgent(loop, 'Pay');
    expect(questions).toEqual([]);
    expect(text).toContain('It says: Paid 3.');
  });

  it('takes another agent as a tool', async () => {
    const poet = agent('poet', () => ['A ', 'poem.']);
    const input = Type.Object({ about: Type.String() });
    const poem: Tool = toolOf({ name: 'poem', description: 'Writes a poem.', input }, ({ about }, { call }) =>
      call('poet', String(about)),
    );
    const { loop } = await looping(calling('poem', { about: 'rain' }), { tools: async () => [poem] });
    const runtime = await createRuntime({ agents: [loop, poet] });
    onTestFinished(() => runtime.close());
    const run = await runtime.sync('loop', 'Go');
    expect(textOf(run.output.at(-1)?.parts ?? [])).toContain('It says: A poem.');
  });

  it('fails where the model calls tools and gives no answer', async () => {
    const { loop, requests } = await looping(() => [{ tool: 'weather', input: { city: 'Oslo' } }], {
      tools: [weather],
      maxTurns: 3,
    });
    const { run } = await runAgent(loop, 'Go');
    expect(run.error).toMatchObject({ message: 'The model asked for tools 3 times and gave no answer.' });
    expect(requests).toHaveLength(3);
  });

  it('fails where the connection to its model breaks, and says so', async () => {
    const choices = [{ index: 0, delta: { role: 'assistant', content: 'Once ' }, finish_reason: null }];
    const chunk = { id: 'answer', object: 'chat.completion.chunk', created: 1, model: 'small', choices };
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${JSON.stringify(chunk)}\n\n`, () => response.socket?.end());
    });
    onTestFinished(() => void server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { run, text } = await runAgent(
      agent('loop', toolLoop({ model: chatModel({ model: 'small', baseURL }) })),
      'Tell',
    );
    expect([run.status, text]).toEqual(['failed', 'Once ']);
    expect(run.error?.message).toBe(
      'The connection to the model broke before the end of its answer: other side closed.',
    );
  });

  it('tells the model what its author makes of the conversation', async () => {
    const { loop, requests } = await looping(() => ['Yes.'], {
      messages: (conversation) => [{ role: 'user', content: `${conversation.length} messages` }],
    });
    await runAgent(loop, 'Go');
    expect(requests[0]?.body.messages).toEqual([{ role: 'user', content: '1 messages' }]);
  });

  it('ends alike wherever its process dies, with an approval and an effect', async () => {
    const { loop } = await looping(calling('pay', { amount: 12 }), { tools: [pay] });
    const { run } = await cutEverywhere(loop, 'Pay', { answers: ['true'], endOf: ({ status }) => status });
    expect(run.status).toBe('completed');
  });

  it('reports each call of the model', async () => {
    const { loop } = await looping(calling('weather', { city: 'Oslo' }), { tools: [weather] });
    const runtime = await createRuntime({ agents: [loop], captureContent: true });
    onTestFinished(() => runtime.close());
    const { run_id } = await runtime.sync('loop', 'How is Oslo?');
    const { diagnostics } = await runtime.diagnostics(run_id);
    expect(diagnostics).toMatchObject([
      {
        kind: 'model_call',
        request_model: 'small',
        response_finish_reasons: ['tool_calls'],
        usage_input_tokens: 1,
        usage_output_tokens: 2,
        response_time_to_first_chunk: expect.any(Number),
        input_messages: [{ role: 'user', parts: [{ type: 'text', content: 'How is Oslo?' }] }],
        tool_definitions: [{ name: 'weather', description: 'The weather in a city.' }],
        output_messages: [
          {
            role: 'assistant',
            parts: [
              { type: 'text', content: 'Let me see. ' },
              { type: 'tool_call', name: 'weather', arguments: { city: 'Oslo' } },
            ],
          },
        ],
      },
      {
        response_finish_reasons: ['stop'],
        input_messages: [
          { role: 'user' },
          { role: 'assistant' },
          { role: 'tool', parts: [{ type: 'tool_call_response', response: { city: 'Oslo', degrees: 7 } }] },
        ],
      },
    ]);
  });
});
