import OpenAI from 'openai';
import { ignoreElements } from 'rxjs';
import { expect, it } from 'vitest';
import { json } from '../../src/index.ts';
import { agent } from '../support/agents.ts';
import { serve } from '../support/serve.ts';

const message = {
  role: 'agent',
  parts: [{ content: 'May ' }, { content: 'I?' }, json({ amount: 3 }), { content: 'Well?' }],
};
const asks = agent('asks', (_, context) => context.await(message).pipe(ignoreElements()));
const text = 'May I?\n\n{"amount":3}\n\nWell?';

it('a blank line is around the JSON of a question in each protocol that asks in a text', async () => {
  const served = await serve([asks]);
  const client = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: 'none' });
  const messages = [{ role: 'user' as const, content: 'hi' }];
  const { choices } = await client.chat.completions.create({ model: 'asks', messages });
  expect(choices[0]?.message.content).toBe(text);
  const { output } = await client.responses.create({ model: 'asks', input: 'hi' });
  expect(output).toMatchObject([{ type: 'function_call', arguments: JSON.stringify({ message: text }) }]);
  const chat = { id: 'chat', messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'hi' }] }] };
  expect(await (await served.post('/ai/asks', chat)).text()).toContain(`"input":{"message":${JSON.stringify(text)}`);
});
