import { safeValidateUIMessages } from 'ai';
import { describe, expect, it } from 'vitest';
import { resumingFetch } from '../../../src/client/ai-sdk.ts';
import { json, progress, textOf } from '../../../src/index.ts';
import { agent, echo } from '../../support/agents.ts';
import { type Served, serve } from '../../support/serve.ts';
import { showcase } from './agents.ts';
import { lastText, plain, question, settled } from './chat.ts';
import { type Chat, type ChatMessage, openChat, type Version } from './chats.ts';

const texts = ({ messages }: Pick<Chat, 'messages'>): string[] =>
  messages.map(({ parts }) => parts.map(({ text = '' }) => text).join(''));

/** Asks where its input says so, and hangs where it says that. */
const obeys = agent('obeys', async function* (input, context) {
  const said = textOf(input);
  yield `To ${said}: `;
  if (said === 'ask') yield textOf((await context.await('Well?')).message);
  if (said === 'hang') await new Promise((_, reject) => context.signal.addEventListener('abort', reject));
  yield 'done.';
});

describe.each(['ai', 'ai5', 'ai50'] satisfies Version[])('a chat of ai %s', (version) => {
  const open = (served: Served, more: object = {}, name = 'obeys'): Chat =>
    openChat(version, { api: `${served.url}/ai/${name}`, id: 'chat', fetch: resumingFetch(), ...more });

  /** A page that loads, as the docs say. */
  async function reloaded(served: Served, more: object = {}): Promise<Chat> {
    const { messages }: { messages: ChatMessage[] } = await (await served.get('/ai/obeys/chat')).json();
    const chat = open(served, { ...more, messages });
    await chat.resumeStream();
    return chat;
  }

  it('keeps an answer with its open question, which a new message came after', async () => {
    const served = await serve([obeys]);
    const stayed = open(served);
    await stayed.sendMessage({ text: 'ask' });
    await stayed.sendMessage({ text: 'go' });
    const chat = await reloaded(served);
    expect(plain(chat.messages)).toEqual(plain(stayed.messages));
    expect(chat.messages[1]?.parts.at(-1)).toMatchObject({ toolName: 'await', state: 'input-available' });
    await chat.regenerate();
    expect([chat.error, texts(chat)]).toEqual([undefined, ['ask', 'To ask: ', 'go', 'To go: done.']]);
  });

  it('keeps the answer of a run that goes on, which a stop and a new message came after', async () => {
    const served = await serve([obeys]);
    const stayed = open(served);
    const sent = stayed.sendMessage({ text: 'hang' });
    await expect.poll(() => lastText(stayed)).toBe('To hang: ');
    await stayed.stop();
    await sent;
    await stayed.sendMessage({ text: 'go' });
    const chat = await reloaded(served);
    expect(texts(chat)).toEqual(['hang', 'To hang: ', 'go', 'To go: done.']);
    await chat.regenerate();
    expect([chat.error, texts(chat)]).toEqual([undefined, texts(stayed)]);
  });

  it('has the run under way, and resumes the one that is queued behind it', async () => {
    const served = await serve([obeys]);
    const headers = { 'If-Busy': 'enqueue' };
    const stayed = open(served, { headers });
    const sent = stayed.sendMessage({ text: 'hang' });
    await expect.poll(() => lastText(stayed)).toBe('To hang: ');
    const first = stayed.lastMessage?.id;
    await stayed.stop();
    await sent;
    const queued = stayed.sendMessage({ text: 'go' });
    await expect.poll(() => stayed.messages.length).toBe(4);
    await stayed.stop();
    await queued;
    const { messages }: { messages: ChatMessage[] } = await (await served.get('/ai/obeys/chat')).json();
    const chat = open(served, { headers, messages });
    const resumed = chat.resumeStream();
    await expect.poll(() => chat.messages.length).toBe(4);
    await served.post(`/runs/${first}/cancel`);
    await resumed;
    expect(texts(chat)).toEqual(['hang', 'To hang: ', 'go', 'To go: done.']);
  });

  it('has an answer of another agent whole, and does not go on in it', async () => {
    const served = await serve([obeys, echo]);
    await open(served).sendMessage({ text: 'ask' });
    const stayed = open(served, {}, 'echo');
    await stayed.sendMessage({ text: 'hi' });
    const chat = await reloaded(served);
    expect(texts(chat)).toEqual(['ask', 'To ask: ', 'hi', 'hi']);
    expect(chat.lastMessage?.id).toBe(stayed.lastMessage?.id);
  });

  const leave = async (chat: Chat, text = 'hang'): Promise<string> => {
    const sent = chat.sendMessage({ text });
    await expect.poll(() => lastText(chat)).toBe(`To ${text}: `);
    await chat.stop();
    await sent;
    return chat.lastMessage?.id ?? '';
  };

  it.each([{ 'If-Busy': 'interrupt' }, { 'On-Disconnect': 'cancel' }, { 'On-Disconnect': 'grace=10' }])(
    'answers a stopped message anew, and removes the run that it has stopped, with %o',
    async (headers) => {
      const served = await serve([obeys]);
      const chat = open(served, { headers });
      const left = await leave(chat);
      const again = chat.regenerate();
      await expect.poll(() => chat.lastMessage?.id).not.toBe(left);
      await expect.poll(() => lastText(chat)).toBe('To hang: ');
      expect([chat.error, (await served.get(`/runs/${left}`)).status]).toEqual([undefined, 404]);
      await chat.stop();
      await again;
      await chat.sendMessage({ text: 'go', messageId: chat.messages[0]?.id });
      expect([chat.error, texts(chat)]).toEqual([undefined, ['go', 'To go: done.']]);
      expect(texts(await (await served.get('/ai/obeys/chat')).json())).toEqual(['go', 'To go: done.']);
    },
  );

  it('answers a message anew whose run it has cancelled, without any header', async () => {
    const served = await serve([obeys]);
    const chat = open(served);
    await served.post(`/runs/${await leave(chat)}/cancel`);
    await chat.sendMessage({ text: 'go', messageId: chat.messages[0]?.id });
    expect([chat.error, texts(chat)]).toEqual([undefined, ['go', 'To go: done.']]);
  });

  it('is refused where nothing asked for the cancel, and then nothing is cancelled or removed', async () => {
    const served = await serve([obeys]);
    const chat = open(served);
    await chat.sendMessage({ text: 'go' });
    const left = await leave(chat);
    await chat.regenerate({ messageId: chat.messages[1]?.id });
    expect([chat.status, chat.error?.message]).toEqual(['error', expect.stringMatching(/is in-progress; cancel it/)]);
    expect((await (await served.get(`/runs/${left}`)).json()).status).toBe('in-progress');
    expect((await (await served.get('/ai/obeys/chat')).json()).messages).toHaveLength(3);
  });

  it('keeps the ids and the metadata of what a user has sent', async () => {
    const served = await serve([echo]);
    const providerMetadata = { any: { cached: true } };
    const parts = [
      { type: 'text', text: 'See this.', providerMetadata },
      { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AQI=', providerMetadata },
      { type: 'data-place', id: 'home', data: { lat: 1 } },
    ];
    const chat = open(served, {}, 'echo');
    await chat.sendMessage({ parts });
    const { messages } = await (await served.get('/ai/echo/chat')).json();
    expect([chat.error, messages[0]]).toEqual([undefined, plain(chat.messages[0])]);
    expect(messages[0].parts).toEqual(parts);
  });

  it('replaces data of one id with the newest, live and after a reload', async () => {
    const bar = (done: number) => ({ type: 'generic' as const, generic: { kind: 'bar', id: 'bar', done } });
    const loads = agent('loads', async function* () {
      yield { ...json({ state: 'loading' }), id: 'weather' };
      yield bar(1);
      yield bar(2);
      yield { ...json({ state: 'sunny' }), id: 'weather' };
      yield progress('other');
    });
    const served = await serve([loads]);
    const chat = open(served, {}, 'loads');
    await chat.sendMessage({ text: 'hi' });
    const data = ({ parts }: Pick<ChatMessage, 'parts'>) =>
      parts.filter(({ type }) => type.startsWith('data-')).map(({ id, data }) => [id, data]);
    expect(data(chat.lastMessage ?? { parts: [] })).toEqual([
      ['weather', expect.objectContaining({ content: '{"state":"sunny"}' })],
      ['bar', expect.objectContaining({ done: 2 })],
      [expect.stringMatching(/^e\d+$/), expect.objectContaining({ message: 'other' })],
    ]);
    const { messages } = await (await served.get('/ai/loads/chat')).json();
    expect(data(messages[1])).toEqual(data(chat.lastMessage ?? { parts: [] }));
  });
});

describe('an approval', () => {
  it.each([
    [true, 'output-available'],
    [false, 'output-denied'],
  ])('that was answered with %s is so after a reload', async (approved, state) => {
    const served = await serve([showcase]);
    const open = (more: object) =>
      openChat('ai', { api: `${served.url}/ai/showcase`, id: 'chat', body: { approvals: true }, ...more });
    const load = async (): Promise<ChatMessage[]> => (await (await served.get('/ai/showcase/chat')).json()).messages;
    const chat = open({});
    await chat.sendMessage({ text: 'it' });
    await chat.addToolApprovalResponse?.({ id: question(chat)?.toolCallId, approved, reason: 'I think so.' });
    await expect.poll(() => lastText(chat)).toContain(`You said ${approved}`);
    await settled(chat);
    const messages = await load();
    const loaded = open({ messages });
    expect(question(loaded)).toEqual(plain(question(chat)));
    expect(question(loaded)).toMatchObject({ state, approval: { approved, reason: 'I think so.' } });
    expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
  });

  it('that waits in an earlier turn is one after a reload', async () => {
    const served = await serve([showcase]);
    const chat = openChat('ai', { api: `${served.url}/ai/showcase`, id: 'chat', body: { approvals: true } });
    for (const text of ['one', 'two']) await chat.sendMessage({ text });
    const { messages } = await (await served.get('/ai/showcase/chat')).json();
    expect(plain(messages[1].parts.at(-1))).toEqual(plain(chat.messages[1]?.parts.at(-1)));
    expect(messages[1].parts.at(-1)).toMatchObject({ state: 'approval-requested' });
  });
});
