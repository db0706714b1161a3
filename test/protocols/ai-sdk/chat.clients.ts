import { describe, expect, it } from 'vitest';
import { serve } from '../../support/serve.ts';
import { hangs } from './agents.ts';
import { describeChats, lastText, question, serveAll, settled } from './chat.ts';
import { type ChatMessage, openChat } from './chats.ts';

// The newest version and the strictest one; chat.servers.ts has the one between them.
describeChats(['ai', 'ai50']);

describe('an approval', () => {
  it.each([
    ['approved', true, 'output-available', 'You said true'],
    ['denied', false, 'output-denied', 'You said false'],
  ])('is asked for and %s', async (_, approved, state, said) => {
    const served = await serveAll();
    const chat = openChat('ai', { api: `${served.url}/ai/showcase`, id: 'chat', body: { approvals: true } });
    await chat.sendMessage({ text: 'it' });
    const asked = question(chat);
    expect(asked).toMatchObject({ state: 'approval-requested', approval: { id: asked?.toolCallId } });
    // A page that loads now gets the same question, without asking for approvals.
    const loaded = openChat('ai', {
      api: `${served.url}/ai/showcase`,
      id: 'chat',
      messages: chat.messages.slice(0, 1),
    });
    await loaded.resumeStream();
    expect(question(loaded)).toMatchObject({ state: 'approval-requested' });
    await loaded.addToolApprovalResponse?.({ id: asked?.toolCallId, approved, reason: 'I think so.' });
    await expect.poll(() => lastText(loaded)).toContain(said);
    await settled(loaded);
    expect(question(loaded)).toMatchObject({ state });
    expect(loaded.error).toBeUndefined();
  });
});

describe('a repeated request', () => {
  it('of an answer anew removes nothing, and gets the run of the first one', async () => {
    const served = await serveAll();
    const message = (id: string, text: string) => ({ id, role: 'user', parts: [{ type: 'text', text }] });
    const post = async (messages: object[], trigger: string, key: string) => {
      const response = await served.post('/ai/counts', { id: 'c', messages, trigger }, { 'idempotency-key': key });
      return [response.headers.get('run-id'), await response.text()];
    };
    await post([message('m1', 'one')], 'submit-message', 'a');
    const first = await post([message('m1', 'one')], 'regenerate-message', 'b');
    expect(await post([message('m1', 'one')], 'regenerate-message', 'b')).toEqual(first);
    const { messages } = await (await served.get('/ai/counts/c')).json();
    expect(messages.map(({ id }: ChatMessage) => id)).toEqual(['m1', first[0]]);
  });

  it('with only the end of a chat is refused, and removes nothing', async () => {
    const served = await serveAll();
    const message = (id: string) => ({ id, role: 'user', parts: [{ type: 'text', text: id }] });
    for (const id of ['m1', 'm2']) await (await served.post('/ai/echo', { id: 'c', messages: [message(id)] })).text();
    for (const body of [{ messages: [message('m2')] }, { message: message('m2') }]) {
      const response = await served.post('/ai/echo', { id: 'c', ...body, trigger: 'regenerate-message' });
      expect([response.status, await response.text()]).toEqual([
        422,
        expect.stringContaining('all messages of the chat'),
      ]);
    }
    expect((await (await served.get('/ai/echo/c')).json()).messages).toHaveLength(4);
  });
});

describe('an answer anew', () => {
  const message = (id: string, role = 'user') => ({ id, role, parts: [{ type: 'text', text: id }] });

  /** A chat of two turns, and the request that answers the second one anew. */
  async function talked(agent: string) {
    const served = await serveAll();
    const first = await served.post(`/ai/${agent}`, { id: 'c', messages: [message('m1')] });
    await first.text();
    const run = first.headers.get('run-id') ?? '';
    const messages = (id: string) => [message('m1'), message(id, 'assistant'), message('m2')];
    await (await served.post('/ai/echo', { id: 'c', messages: messages(run) })).text();
    const answerAnew = async (id: string, headers = {}): Promise<number> => {
      const body = { id: 'c', messages: messages(id), trigger: 'regenerate-message' };
      const response = await served.post('/ai/echo', body, headers);
      await response.text();
      return response.status;
    };
    const roles = async (): Promise<string[]> =>
      (await (await served.get('/ai/echo/c')).json()).messages.map(({ role }: ChatMessage) => role);
    return { run, answerAnew, roles };
  }

  it('that is refused, because a run awaits a reply, removes nothing', async () => {
    const { run, answerAnew, roles } = await talked('ask');
    expect(await answerAnew(run, { 'if-busy': 'reject' })).toBe(409);
    expect(await roles()).toEqual(['user', 'assistant', 'user', 'assistant']);
  });

  it('keeps a run however its id is written', async () => {
    const { run, answerAnew, roles } = await talked('echo');
    expect(await answerAnew(run.toUpperCase())).toBe(200);
    expect(await roles()).toEqual(['user', 'assistant', 'user', 'assistant']);
  });
});

it('a stream breaks where the server stops before the run has ended', async () => {
  const served = await serve([{ ...hangs, options: { durable: true } }]);
  const messages = [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }];
  const response = await served.post('/ai/hangs', { messages });
  const broken = expect(response.text()).rejects.toThrow('terminated');
  await served.app.close();
  await broken;
});
