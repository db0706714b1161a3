import OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import { concat, defer, ignoreElements, map, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { agent } from '../support/agents.ts';
import { ask, serveAll } from '../support/serve.ts';
import { generations } from './ag-ui/clients.ts';
import { openChat } from './ai-sdk/chats.ts';

/** Uses tokens before its question and after that. */
const costs = agent('costs', (_, context) => {
  const use = (input_tokens: number, output_tokens: number) =>
    defer(() => of(context.usage({ input_tokens, output_tokens }))).pipe(ignoreElements());
  return concat(
    use(3, 4),
    context.await('Well?', { tool: { name: 'look' } }).pipe(map(({ message }) => `${message.parts[0]?.content}.`)),
    use(10, 20),
  );
});

const served = await serveAll([costs]);
const client = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: 'none' });

describe('the usage before a question', () => {
  it('is told with the question in the REST API, and the whole at the end', async () => {
    const run = await (await served.post('/runs', ask('costs'))).json();
    expect([run.status, run.usage]).toEqual(['awaiting', { tokens: 7, input_tokens: 3, output_tokens: 4 }]);
    const await_resume = { type: 'message', message: { parts: [{ content: 'yes' }] } };
    const ended = await (await served.post(`/runs/${run.run_id}`, { await_resume })).json();
    expect(ended.usage).toEqual({ tokens: 37, input_tokens: 13, output_tokens: 24 });
  });

  it.each([false, true])('is that of the first response, and not of the second; stream: %s', async (stream) => {
    const create = (body: { input: OpenAI.Responses.ResponseInput; previous_response_id?: string }) =>
      stream
        ? client.responses.stream({ model: 'costs', ...body }).finalResponse()
        : client.responses.create({ model: 'costs', ...body });
    const asked = await create({ input: [{ role: 'user', content: 'hi' }] });
    expect(asked.usage).toMatchObject({ input_tokens: 3, output_tokens: 4, total_tokens: 7 });
    const input = asked.output.flatMap((item) =>
      item.type === 'function_call'
        ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: 'yes' }]
        : [],
    );
    const { usage, output_text } = await create({ input, previous_response_id: asked.id });
    expect([output_text, usage]).toMatchObject(['yes.', { input_tokens: 10, output_tokens: 20, total_tokens: 30 }]);
  });

  it.each([false, true])('is that of the first completion, and not of the second; stream: %s', async (stream) => {
    const tools = [{ type: 'function' as const, function: { name: 'look' } }];
    const body = { model: 'costs', tools, stream_options: { include_usage: true } };
    const create = (messages: ChatCompletionMessageParam[]) =>
      stream
        ? client.chat.completions.stream({ ...body, messages }).finalChatCompletion()
        : client.chat.completions.create({ model: 'costs', tools, messages });
    const messages: ChatCompletionMessageParam[] = [{ role: 'user', content: 'hi' }];
    const asked = await create(messages);
    expect(asked.usage).toEqual({ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 });
    const [choice] = asked.choices;
    const call = choice?.message.tool_calls?.[0];
    if (choice === undefined || call === undefined) throw new Error('expected a call');
    const answered = await create([
      ...messages,
      { ...choice.message, tool_calls: [call] },
      { role: 'tool', tool_call_id: call.id, content: 'yes' },
    ]);
    expect(answered.usage).toEqual({ prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 });
  });

  it('is that of a completion which asks in its text', async () => {
    const { usage } = await client.chat.completions.create({
      model: 'costs',
      messages: [{ role: 'user', content: 'hi' }],
    });
    expect(usage).toEqual({ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 });
  });

  it.each(generations)('is that of the first run of an AG-UI client, and not of the second: %s', async (_, make) => {
    const usages: unknown[] = [];
    const onRunFinishedEvent = ({ event }: { event: { usage?: object[] } }) => void usages.push(event.usage?.[0]);
    const initialMessages = [{ id: 'm', role: 'user', content: 'hi' }];
    const agUi = make({ url: `${served.url}/ag-ui/costs`, threadId: 'thread', initialMessages });
    await agUi.go({}, { onRunFinishedEvent });
    const [{ id } = { id: '' }] = agUi.pendingInterrupts;
    await agUi.go({ resume: [{ interruptId: id, status: 'resolved', payload: 'yes' }] }, { onRunFinishedEvent });
    expect(usages).toEqual([
      { totalTokens: 7, inputTokens: 3, outputTokens: 4 },
      { totalTokens: 30, inputTokens: 10, outputTokens: 20 },
    ]);
  });

  it('is in the metadata of the message in the AI SDK, and the whole in the end', async () => {
    const chat = openChat('ai', { api: `${served.url}/ai/costs`, id: 'chat', sends: true });
    await chat.sendMessage({ text: 'hi' });
    expect(chat.lastMessage?.metadata).toMatchObject({ status: 'awaiting', usage: { tokens: 7 } });
    const { toolCallId } = chat.lastMessage?.parts.at(-1) ?? {};
    await chat.addToolResult({ tool: 'look', toolCallId, output: 'yes' });
    await expect.poll(() => chat.lastMessage?.metadata).toMatchObject({ status: 'completed', usage: { tokens: 37 } });
  });
});
