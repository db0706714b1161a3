import { expect, it } from 'vitest';
import { defineAgent } from '../../src/index.ts';
import { ask, serve } from '../support/serve.ts';

const sure = defineAgent({ name: 'sure', description: 'Asks for a yes or a no.' }, async function* (_, context) {
  const { message } = await context.await('Sure?', { schema: { type: 'boolean' } });
  yield `${message.parts[0]?.content}`;
});

const output = 'perhaps';
const tools = [{ type: 'function', function: { name: 'ask_user' } }];
const said = { role: 'user', content: 'Go' };

/** A reply that does not fit, in the words of each protocol; `call` is the number of the event that asks. */
const replies: [path: string, place: string, body: (run: string, call: number) => object][] = [
  [
    '/v1/responses',
    'input[0].output',
    (run, call) => ({
      model: 'sure',
      previous_response_id: `resp_${run}`,
      input: [{ type: 'function_call_output', call_id: `call_${run}_${call}`, output }],
    }),
  ],
  [
    '/v1/chat/completions',
    'messages[2].content',
    (run, call) => {
      const id = `call_${run}_${call}`;
      const calls = [{ id, type: 'function', function: { name: 'ask_user', arguments: '{}' } }];
      const result = { role: 'tool', tool_call_id: id, content: output };
      return { model: 'sure', tools, messages: [said, { role: 'assistant', tool_calls: calls }, result] };
    },
  ],
  [
    '/ag-ui/sure',
    'resume[0].payload',
    (run, call) => ({
      threadId: 't',
      runId: 'r2',
      messages: [{ id: '1', ...said }],
      resume: [{ interruptId: `${run}.${call}`, status: 'resolved', payload: output }],
    }),
  ],
  [
    '/ag-ui/sure',
    'messages[1].content',
    (run, call) => ({
      threadId: 't',
      runId: 'r3',
      messages: [
        { id: '1', ...said },
        { id: '2', role: 'tool', toolCallId: `${run}.${call}`, content: output },
      ],
    }),
  ],
  [
    '/ai/sure',
    'output',
    (run) => {
      const part = { type: 'dynamic-tool', toolName: 'await', toolCallId: `${run}:q1`, state: 'output-available' };
      return { messages: [{ id: run, role: 'assistant', parts: [{ ...part, input: {}, output }] }] };
    },
  ],
  [
    '/a2a/sure/message:send',
    'message.parts',
    (run) => ({ message: { messageId: 'm', role: 'ROLE_USER', taskId: run, parts: [{ text: output }] } }),
  ],
];

it.each(replies)('a reply that does not fit is named by its place in the request: %s %s', async (path, place, body) => {
  const served = await serve([sure]);
  const { run_id } = await (await served.post('/runs', ask('sure'))).json();
  const response = await served.post(path, body(run_id, 3), { 'a2a-version': '1.0' });
  expect(response.ok).toBe(false);
  const text = await response.text();
  expect(text).toContain(`${place}: must be boolean.`);
  expect(text).not.toContain('await_resume');
});
