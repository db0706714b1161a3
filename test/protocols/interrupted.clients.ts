import { remoteAgent } from 'rivulet/remote';
import { runAgent } from 'rivulet/testing';
import { describe, expect, it, vi } from 'vitest';
import { agent } from '../support/agents.ts';
import { shared } from '../support/serve.ts';
import { clientOf as a2aClientOf, bindings, followed, message } from './a2a/clients.ts';
import { generations } from './ag-ui/clients.ts';
import { openChat, versionNames } from './ai-sdk/chats.ts';
import { clients as mcpClients } from './mcp/clients.ts';
import { clientOf } from './openai/client.ts';

/** As a model in a step says something else after a crash. */
const restarted = agent('restarted', () => [
  'The cat ',
  { role: 'agent', parts: [], finish_reason: 'interrupted' as const },
  'The dog ',
  'ran.',
]);
const mirror = agent('mirror', (input) => JSON.stringify(input.map(({ parts }) => parts[0]?.content)));
const served = shared([restarted, mirror]);

describe('an interrupted message', () => {
  it.each(versionNames)('is a text part with its reason to %s, also in a transcript', async (version) => {
    const { url, get } = await served();
    const id = crypto.randomUUID();
    const chat = openChat(version, { api: `${url}/ai/restarted`, id });
    await chat.sendMessage({ text: 'Go' });
    expect([chat.status, chat.error]).toEqual(['ready', undefined]);
    const texts = chat.lastMessage?.parts.filter(({ type }) => type === 'text');
    expect(texts).toMatchObject([
      { text: 'The cat ', state: 'done', providerMetadata: { rivulet: { finish_reason: 'interrupted' } } },
      { text: 'The dog ran.', state: 'done' },
    ]);
    const { messages } = await (await get(`/ai/restarted/${id}`)).json();
    expect(messages.at(-1)).toMatchObject({ parts: JSON.parse(JSON.stringify(chat.lastMessage?.parts)) });
  });

  it.each(generations)('is a message of its own to AG-UI %s, and is not in its next input', async (_, make) => {
    const { url } = await served();
    const warn = vi.spyOn(console, 'warn');
    const initialMessages = [{ id: 'u1', role: 'user', content: 'Go' }];
    const client = make({ url: `${url}/ag-ui/restarted`, threadId: crypto.randomUUID(), initialMessages });
    await client.go();
    expect(client.messages.map(({ content }) => content)).toEqual(['Go', 'The cat ', 'The dog ran.']);
    const next = make({
      url: `${url}/ag-ui/mirror`,
      threadId: crypto.randomUUID(),
      initialMessages: [...client.messages, { id: 'u2', role: 'user', content: 'Again' }],
    });
    await next.go();
    expect(JSON.parse(String(next.messages.at(-1)?.content))).toEqual(['Go', 'The dog ran.', 'Again']);
    expect(warn.mock.calls).toEqual([]);
    warn.mockRestore();
  });

  it('is an incomplete item to the official client of Responses, streamed and whole', async () => {
    const client = clientOf((await served()).url);
    const statuses = ['incomplete', 'completed'];
    const whole = await client.responses.create({ model: 'restarted', input: 'Go' });
    expect(whole.output.map((item) => 'status' in item && item.status)).toEqual(statuses);
    const streamed = await client.responses.stream({ model: 'restarted', input: 'Go' }).finalResponse();
    expect([streamed.status, streamed.output.map((item) => 'status' in item && item.status)]).toEqual([
      'completed',
      statuses,
    ]);
  });

  it.each(bindings)(
    'is an artifact with a mark to the official client of A2A in %s, streamed and read',
    async (binding) => {
      const client = await a2aClientOf(`${(await served()).url}/a2a/restarted/`, binding);
      const task = await followed(client.sendMessageStream(message('Go')));
      const read = await client.getTask({ tenant: '', id: task.id });
      const marks = [{ 'urn:rivulet:a2a:interrupted:1': true }, undefined];
      for (const { artifacts } of [task, read]) expect(artifacts.map(({ metadata }) => metadata)).toEqual(marks);
    },
  );

  it.each(['agents/restarted', 'a2a/restarted/'])('is one to a caller on another server, at %s', async (path) => {
    const { url } = await served();
    const caller = await remoteAgent(`${url}/${path}`, { allowNetworks: ['127.0.0.1'] });
    const { run } = await runAgent(caller, 'Go');
    expect(run.output).toMatchObject([
      { finish_reason: 'interrupted', parts: [{ content: 'The cat ' }] },
      { parts: [{ content: 'The dog ran.' }] },
    ]);
    expect(run.output[1]).not.toHaveProperty('finish_reason');
  });

  it.each(mcpClients)('is not in the result of a tool to %s', async (_, open) => {
    const client = await open((await served()).url);
    const { content } = await client.call('restarted', { input: 'Go' });
    expect(content).toEqual([{ type: 'text', text: 'The dog ran.' }]);
  });
});
