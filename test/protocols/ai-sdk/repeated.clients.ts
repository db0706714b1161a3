import { DefaultChatTransport, type UIMessage, type UIMessageChunk } from 'ai';
import { expect, it } from 'vitest';
import { askOnce, tokens } from '../../support/agents.ts';
import { serve } from '../../support/serve.ts';

/** The ids of the frames of the last response, and its chunks as the official transport reads them. */
async function send(url: string, headers: Record<string, string>) {
  let text: Promise<string> = Promise.resolve('');
  const transport = new DefaultChatTransport({
    api: url,
    headers,
    fetch: async (...request) => {
      const response = await fetch(...request);
      text = response.clone().text();
      return response;
    },
  });
  const messages: UIMessage[] = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: '5' }] }];
  const options = { chatId: 'c', messages, messageId: undefined, abortSignal: undefined };
  const chunks: UIMessageChunk[] = [];
  for await (const chunk of await transport.sendMessages({ trigger: 'submit-message', ...options })) chunks.push(chunk);
  return { chunks, ids: [...(await text).matchAll(/^id: (.+)$/gm)].map(([, id = '']) => id) };
}

it.each(['tokens', 'ask'])('a repeated request of a chat goes on after any chunk of its stream: %s', async (name) => {
  const served = await serve([tokens, askOnce]);
  const key = { 'Idempotency-Key': 'k' };
  const { chunks, ids } = await send(`${served.url}/ai/${name}`, key);
  expect(ids.length).toBeGreaterThan(4);
  for (const [index, id] of ids.entries()) {
    const again = await send(`${served.url}/ai/${name}`, { ...key, 'Last-Event-ID': id });
    const textOf = (all: UIMessageChunk[]) => all.map((one) => (one.type === 'text-delta' ? one.delta : '')).join('');
    expect(textOf(again.chunks)).toBe(textOf(chunks.slice(index + 1)));
    expect(again.chunks.at(-1)).toEqual(chunks.at(-1));
  }
  await expect(send(`${served.url}/ai/${name}`, { 'Idempotency-Key': 'l', 'Last-Event-ID': '3.1' })).rejects.toThrow(
    'There is no run with the Idempotency-Key l.',
  );
  expect((await (await served.get('/runs')).json()).runs).toHaveLength(1);
});
