import { concat, defer, map, of, throwError } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { AgentError, citation, file, progress, sharedState, statePatch, trajectory } from '../../../src/index.ts';
import { agent, askOnce, never } from '../../support/agents.ts';
import { eventually } from '../../support/eventually.ts';
import { serveAll } from '../../support/serve.ts';
import { generations } from './clients.ts';

const everything = agent('everything', (_, context) =>
  concat(
    of('Looking. '),
    of(trajectory({ message: 'Where to look?' })),
    of(trajectory({ tool_name: 'search', tool_input: { q: 'x' }, tool_output: { hits: 2 } })),
    of('Found ', 'it.'),
    of(citation({ url: 'https://example.com/', title: 'Here', start_index: 9, end_index: 17 })),
    of(file('a.png', new Uint8Array([0, 1, 2]), 'image/png')),
    of(progress('nearly', { done: 1, total: 2 })),
    of(sharedState({ steps: ['search'] })),
    of(statePatch([{ op: 'add', path: '/steps/-', value: 'answer' }])),
    defer(() => {
      context.usage({ tokens: 12, input_tokens: 5, output_tokens: 7 });
      return of();
    }),
  ),
);

const sees = agent('sees', (input, { request }) =>
  of(JSON.stringify({ ...request, metadata: { ...request.metadata, messages: undefined }, input })),
);
const fails = agent('fails', () =>
  concat(
    of('so far'),
    throwError(() => new AgentError('no_money', 'The account is empty.')),
  ),
);
const approves = agent('approves', (_, context) =>
  context
    .await('May I?', { schema: { type: 'boolean' } })
    .pipe(map(({ message }) => `You said ${message.parts[0]?.content}.`)),
);
const browse = { name: 'browse', description: 'opens a page', parameters: { type: 'object' } };
const browses = agent('browses', (_, context) =>
  concat(
    of('Let me look. '),
    context
      .await('the page', { tool: { name: 'browse', input: { url: 'https://example.com/' } } })
      .pipe(map(({ message }) => `It says ${message.parts[0]?.content}.`)),
  ),
);

const served = await serveAll([everything, sees, fails, approves, askOnce, browses, never]);

const user = (content: unknown) => ({ id: 'u1', role: 'user', content });

describe.each(generations)('the official client %s', (_, make, modern) => {
  const clientOf = (name: string, messages: object[] = [user('hi')], more: object = {}) =>
    make({ url: `${served.url}/ag-ui/${name}`, threadId: 'any thread', initialMessages: messages, ...more });

  it('reads text, tool calls, reasoning, files, citations, state and usage', async () => {
    // The client warns of each field that it does not know.
    const warn = vi.spyOn(console, 'warn');
    const client = clientOf('everything');
    const finished: { usage?: object[] }[] = [];
    const types = await client.go(
      {},
      { onRunFinishedEvent: ({ event }: { event: { usage?: object[] } }) => void finished.push(event) },
    );
    expect(warn.mock.calls).toEqual([]);
    warn.mockRestore();
    expect(finished).toMatchObject([{ usage: [{ totalTokens: 12, inputTokens: 5, outputTokens: 7 }] }]);
    const [, said, thought, call, result, answer, ...none] = client.messages;
    expect([said, thought, answer]).toMatchObject([
      { role: 'assistant', content: 'Looking. ' },
      { role: 'reasoning', content: 'Where to look?' },
      { role: 'assistant', content: 'Found it.' },
    ]);
    expect(call).toMatchObject({ toolCalls: [{ function: { name: 'search', arguments: '{"q":"x"}' } }] });
    expect(result).toMatchObject({ role: 'tool', toolCallId: call?.id, content: '{"hits":2}' });
    expect(none).toEqual([]);
    expect(client.state).toEqual({ steps: ['search', 'answer'] });
    expect(types.filter((type) => type === 'CUSTOM')).toHaveLength(3);
    expect([types[0], types.at(-1)]).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
  });

  it('shows an agent its state, tools, context and properties, and its history as input', async () => {
    const history = [
      { id: 's1', role: 'system', content: 'Be brief.' },
      { id: 'd1', role: 'developer', content: 'In verse.' },
      user('hi'),
      {
        id: 'a1',
        role: 'assistant',
        content: 'Wait.',
        toolCalls: [{ id: 'c1', type: 'function', function: { name: 'clock', arguments: '{"zone":"UTC"}' } }],
      },
      { id: 't1', role: 'tool', toolCallId: 'c1', content: '12:00' },
      {
        ...user([
          { type: 'text', text: 'And this?' },
          { type: 'image', source: { type: 'data', value: 'aGk=', mimeType: 'image/png' } },
          { type: 'document', source: { type: 'url', value: 'data:text/csv,a%2Cb' } },
        ]),
        id: 'u2',
      },
    ];
    const client = clientOf('sees', history, { initialState: { page: 3 } });
    const tools = [browse];
    await client.go({
      runId: `sees ${modern}`,
      tools,
      context: [{ description: 'where', value: 'here' }],
      forwardedProps: { a: 1 },
    });
    const seen = JSON.parse(String(client.messages.at(-1)?.content));
    expect(seen).toMatchObject({
      protocol: 'ag-ui',
      conversation: 'any thread',
      instructions: 'Be brief.\n\nIn verse.',
      state: { page: 3 },
      tools,
      metadata: {
        context: [{ description: 'where', value: 'here' }],
        forwardedProps: { a: 1 },
        runId: `sees ${modern}`,
      },
    });
    expect(seen.input.map(({ role, parts }: { role: string; parts: unknown }) => ({ role, parts }))).toMatchObject([
      { role: 'user', parts: [{ content: 'hi' }] },
      {
        role: 'agent/sees',
        parts: [
          { content: 'Wait.' },
          { metadata: { tool_name: 'clock', tool_input: { zone: 'UTC' }, tool_output: { result: '12:00' } } },
        ],
      },
      {
        role: 'user',
        parts: [
          { content: 'And this?' },
          { content_type: 'image/png', content: 'aGk=' },
          { content_type: 'text/csv', content: 'a,b' },
        ],
      },
    ]);
  });

  it('gets the error of a failed run, with the code of its agent', async () => {
    const client = clientOf('fails');
    const errors: object[] = [];
    await client.go({}, { onRunErrorEvent: ({ event }: { event: object }) => void errors.push(event) });
    expect(errors).toMatchObject([{ message: 'The account is empty.', code: 'no_money' }]);
    expect(client.messages.at(-1)?.content).toBe('so far');
  });

  it('keeps the mark of an answer that failed, and the agent of the next run gets it', async () => {
    const client = clientOf('fails');
    await client.go();
    const next = clientOf('sees', [...client.messages, { ...user('And?'), id: 'u2' }]);
    await next.go();
    expect(JSON.parse(String(next.messages.at(-1)?.content)).input).toMatchObject([
      { role: 'user', parts: [{ content: 'hi' }] },
      // Clients before 1.0 keep no metadata of messages.
      { role: 'agent/sees', parts: [{ content: 'so far' }], ...(modern && { finish_reason: 'failed' }) },
      { role: 'user', parts: [{ content: 'And?' }] },
    ]);
  });

  it('answers an interrupt, and goes on in its next run', async () => {
    const client = clientOf('approves');
    await client.go();
    const [interrupt] = client.pendingInterrupts;
    expect(interrupt).toMatchObject({ reason: 'confirmation', message: 'May I?', responseSchema: { type: 'boolean' } });
    await client.go({ resume: [{ interruptId: interrupt?.id, status: 'resolved', payload: true }] });
    expect(client.pendingInterrupts).toEqual([]);
    expect(client.messages.at(-1)?.content).toBe('You said true.');
  });

  it('cancels the run whose interrupt it gives up, and goes on with the thread', async () => {
    const client = clientOf('ask');
    await client.go();
    const [interrupt] = client.pendingInterrupts;
    const types = await client.go({ resume: [{ interruptId: interrupt?.id, status: 'cancelled' }] });
    expect(types).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
    expect(client.pendingInterrupts).toEqual([]);
    await client.go();
    expect(client.pendingInterrupts).toHaveLength(1);
  });

  it('runs a tool that the agent asks for, and posts its result as a message', async () => {
    const client = clientOf('browses');
    const asked: object[] = [];
    await client.go({ tools: [browse] }, { onCustomEvent: ({ event }: { event: object }) => void asked.push(event) });
    // At which TanStack AI runs its tools.
    expect(asked).toMatchObject([{ name: 'tool-input-available', value: { toolName: 'browse' } }]);
    const { id, toolCalls } = client.messages.at(-1) as unknown as { id: string; toolCalls: { function: object }[] };
    expect(client.pendingInterrupts).toEqual([]);
    expect(toolCalls[0]?.function).toEqual({ name: 'browse', arguments: '{"url":"https://example.com/"}' });
    client.addMessage({ id: 'result', role: 'tool', toolCallId: id, content: 'hello' });
    await client.go();
    expect(client.messages.at(-1)?.content).toBe('It says hello.');
  });

  it('is asked a question where it has not the tool that the agent asks for', async () => {
    const client = clientOf('browses');
    const runId = crypto.randomUUID();
    await client.go({ runId, tools: [{ ...browse, name: 'other' }] });
    expect(client.messages.at(-1)).not.toHaveProperty('toolCalls');
    expect(client.pendingInterrupts).toMatchObject([{ message: 'the page', reason: 'input_required' }]);
    const again = await served.get(`/ag-ui/browses/runs/${runId}`);
    expect(await again.text()).toContain('"message":"the page"');
    const [{ id } = { id: '' }] = client.pendingInterrupts;
    await client.go({ resume: [{ interruptId: id, status: 'resolved', payload: 'hello' }] });
    expect(client.messages.at(-1)?.content).toBe('It says hello.');
  });

  it('is told of a cancelled run', async () => {
    const client = clientOf('never');
    const runId = crypto.randomUUID();
    const run = client.go({ runId });
    const cancelled = await eventually(async () => {
      const response = await served.post(`/ag-ui/never/runs/${runId}/cancel`);
      expect(response.status).toBe(202);
      return response.json();
    });
    expect(cancelled).toMatchObject({ runId, status: 'cancelling' });
    expect((await run).at(-1)).toBe(modern ? 'RUN_FINISHED' : 'RUN_ERROR');
  });
});
