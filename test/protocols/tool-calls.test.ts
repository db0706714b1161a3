import { describe, expect, it } from 'vitest';
import { type AgentOutput, defineAgent, trajectory } from '../../src/index.ts';
import { agent } from '../support/agents.ts';
import { shared } from '../support/serve.ts';

const call = (id: string, city: string) => trajectory({ tool_name: 'weather', tool_call_id: id, tool_input: { city } });
const result = (id: string, degrees: number) =>
  trajectory({ tool_name: 'weather', tool_call_id: id, tool_output: { degrees } });
const failed = (id: string) => trajectory({ tool_name: 'weather', tool_call_id: id, tool_error: 'It is down.' });
/** Two calls at once; the second has its result first, and the first one fails. */
const both = agent('both', () => [
  'Let me look. ',
  call('a', 'Oslo'),
  call('b', 'Rome'),
  result('b', 30),
  failed('a'),
  'Done.',
]);
/** As agents do that give no ids. */
const plain = agent('plain', () => [
  trajectory({ tool_name: 'weather', tool_input: { city: 'Oslo' } }),
  trajectory({ tool_name: 'weather', tool_output: { degrees: 20 } }),
]);
const left = agent('left', (): AgentOutput[] => [call('a', 'Oslo'), 'Never mind.']);
const asks = defineAgent({ name: 'asks', description: '?' }, async function* (_, context) {
  yield call('a', 'Oslo');
  await context.await('Go on?');
  yield result('a', 20);
});

const served = shared([both, plain, left, asks]);
const user = { role: 'user', content: 'Go' };
const framesOf = async (path: string, body: object) => {
  const text = await (await (await served()).post(path, body)).text();
  return text.split('\n').flatMap((line) => (line.startsWith('data: {') ? JSON.parse(line.slice(6)) : []));
};
const chat = (name: string, id = crypto.randomUUID()) =>
  framesOf(`/ai/${name}`, { id, messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Go' }] }] });
const agUi = (name: string) =>
  framesOf(`/ag-ui/${name}`, { threadId: 't', runId: 'r', messages: [{ id: 'm', ...user }] });
const responses = (model: string) => framesOf('/v1/responses', { model, input: 'Go', stream: true });
const numberOf = ({ toolCallId }: { toolCallId: string }): string => toolCallId.replace(/^.*\D(\d+)$/, '$1');

describe('calls of tools', () => {
  it('are announced by the AI SDK’s stream, and end under the same ids', async () => {
    const tools = (await chat('both')).filter(({ type }) => type.startsWith('tool-'));
    expect(tools.map((one) => [one.type, numberOf(one), one.input ?? one.output ?? one.errorText])).toEqual([
      ['tool-input-available', '5', { city: 'Oslo' }],
      ['tool-input-available', '6', { city: 'Rome' }],
      ['tool-output-available', '6', { degrees: 30 }],
      ['tool-output-error', '5', 'It is down.'],
    ]);
  });

  it('are one call without an id as well', async () => {
    const tools = (await chat('plain')).filter(({ type }) => type.startsWith('tool-'));
    expect(tools.map((one) => [one.type, numberOf(one)])).toEqual([
      ['tool-input-available', '4'],
      ['tool-output-available', '4'],
    ]);
    const { output } = await (await (await served()).post('/v1/responses', { model: 'plain', input: 'Go' })).json();
    expect(output).toMatchObject([{ type: 'mcp_call', status: 'completed', output: '{"degrees":20}' }]);
  });

  it('that have no result when the run ends have an empty one', async () => {
    const tools = (await chat('left')).filter(({ type }) => type.startsWith('tool-'));
    expect(tools.map(({ type, output }) => [type, output])).toEqual([
      ['tool-input-available', undefined],
      ['tool-output-available', {}],
    ]);
    const frames = (await agUi('left')).filter(({ type }) => type.startsWith('TOOL_CALL'));
    expect(frames.at(-1)).toMatchObject({ type: 'TOOL_CALL_RESULT' });
    const items = (await responses('left')).filter(({ type }) => type === 'response.output_item.done');
    expect(items.map(({ item }) => [item.type, item.status])).toEqual([
      ['message', 'completed'],
      ['mcp_call', 'incomplete'],
    ]);
  });

  it('are frames of their own in AG-UI, from their start to their result', async () => {
    const frames = (await agUi('both')).filter(({ type }) => type.startsWith('TOOL_CALL'));
    expect(frames.map((one) => [one.type.slice('TOOL_CALL_'.length), numberOf(one)])).toEqual([
      ['START', '5'],
      ['ARGS', '5'],
      ['END', '5'],
      ['START', '6'],
      ['ARGS', '6'],
      ['END', '6'],
      ['RESULT', '6'],
      ['RESULT', '5'],
    ]);
    expect(frames.slice(-2).map(({ content }) => JSON.parse(content))).toEqual([
      { degrees: 30 },
      { error: 'It is down.' },
    ]);
  });

  it('are items in progress of Responses, which keep their places', async () => {
    const frames = await responses('both');
    const items = frames.filter(({ type }) => /output_item/.test(type));
    expect(
      items.map(({ type, output_index, item }) => [type.split('.').at(-1), output_index, item.type, item.status]),
    ).toEqual([
      ['added', 0, 'message', 'in_progress'],
      ['done', 0, 'message', 'completed'],
      ['added', 1, 'mcp_call', 'in_progress'],
      ['added', 2, 'mcp_call', 'in_progress'],
      ['done', 2, 'mcp_call', 'completed'],
      ['done', 1, 'mcp_call', 'failed'],
      ['added', 3, 'message', 'in_progress'],
      ['done', 3, 'message', 'completed'],
    ]);
    const types = frames.map(({ type }) => type);
    expect(types).toContain('response.mcp_call.completed');
    expect(types).toContain('response.mcp_call.failed');
    const { output } = frames.at(-1).response;
    expect(output.map(({ type, status, error }: Record<string, string>) => [type, status, error])).toEqual([
      ['message', 'completed', undefined],
      ['mcp_call', 'failed', 'It is down.'],
      ['mcp_call', 'completed', null],
      ['message', 'completed', undefined],
    ]);
  });

  it('stay open over a question', async () => {
    const id = crypto.randomUUID();
    const asked = await chat('asks', id);
    const [begun, question] = asked.filter(({ type }) => type === 'tool-input-available');
    expect(asked.filter(({ type }) => type === 'tool-output-available')).toEqual([]);
    const messages = await (await (await served()).get(`/ai/asks/${id}`)).json();
    expect(messages.messages).toHaveLength(1);
    const run_id = question.toolCallId.replace(/:.*/, '');
    const api = await served();
    const { await_request } = await (await api.get(`/runs/${run_id}`)).json();
    await api.post(`/runs/${run_id}`, {
      run_id,
      await_resume: { question_id: await_request.id, message: { parts: [{ content: 'yes' }] } },
      mode: 'sync',
    });
    const transcript = await (await api.get(`/ai/asks/${id}`)).json();
    const part = transcript.messages[1].parts.find(
      ({ toolCallId }: { toolCallId?: string }) => toolCallId === begun.toolCallId,
    );
    expect(part).toMatchObject({ state: 'output-available', input: { city: 'Oslo' }, output: { degrees: 20 } });
  });

  it('are one line of Chat Completions each', async () => {
    const { choices } = await (
      await (await served()).post('/v1/chat/completions', { model: 'both', messages: [user] })
    ).json();
    expect(choices[0].message.reasoning_content).toBe('weather {"city":"Oslo"}\nweather {"city":"Rome"}\n');
  });
});
