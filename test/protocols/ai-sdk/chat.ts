import { join } from 'node:path';
import { Subject } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { resumingFetch } from '../../../src/client/ai-sdk.ts';
import type { ServerOptions } from '../../../src/index.ts';
import { askOnce, echo } from '../../support/agents.ts';
import { newFolder } from '../../support/folder.ts';
import { eventsOf, type Served, serve } from '../../support/serve.ts';
import { asksTwice, browses, counts, fails, hangs, pollutes, sees, showcase, talks } from './agents.ts';
import { type Chat, type ChatMessage, type ChatPart, openChat, type Version } from './chats.ts';

const agents = [askOnce, asksTwice, browses, counts, echo, fails, hangs, pollutes, sees, showcase];
export const serveAll = (options: Partial<ServerOptions> = {}): Promise<Served> => serve(agents, options);

const textOf = ({ parts }: Pick<ChatMessage, 'parts'>): string =>
  parts.flatMap(({ type, text = '' }) => (type === 'text' ? [text] : [])).join('');
export const lastText = ({ lastMessage }: Chat): string => (lastMessage === undefined ? '' : textOf(lastMessage));
export const question = (chat: Chat): ChatPart | undefined =>
  chat.lastMessage?.parts.findLast(({ toolName }) => toolName === 'await');
export const settled = (chat: Chat) => expect.poll(() => chat.status).toMatch(/ready|error/);

/** Answers the question of a chat, and waits until the answer has been sent and the chat is at rest. */
async function answer(chat: Chat, output: unknown): Promise<void> {
  const before = chat.lastMessage?.parts.length;
  await chat.addToolResult({ tool: 'await', toolCallId: question(chat)?.toolCallId, output });
  await expect.poll(() => chat.lastMessage?.parts.length).not.toBe(before);
  await settled(chat);
}

const transcript = async (served: Served, chat: Chat, agent: string): Promise<ChatMessage[]> =>
  (await (await served.get(`/ai/${agent}/${chat.id}`)).json()).messages;
export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** The tests of a chat with the official clients of these versions. */
export function describeChats(versions: readonly Version[]): void {
  describe.each(versions)('a chat of %s', (version: Version) => {
    const open = (served: Served, agent: string, more: object = {}): Chat =>
      openChat(version, { api: `${served.url}/ai/${agent}`, id: 'chat', ...more });

    it.each(['memory', 'sqlite'])('shows every kind of part, asks, and goes on after the answer (%s)', async (kind) => {
      const folder = newFolder(onTestFinished);
      const store = kind === 'memory' ? 'memory:' : `sqlite:${join(folder, 'runs.db')}`;
      const served = await serveAll({ store });
      const chat = open(served, 'showcase');
      await chat.sendMessage({ text: 'the sky' });
      expect(chat.error).toBeUndefined();
      const [said, message] = chat.messages;
      expect(textOf(said as ChatMessage)).toBe('the sky');
      expect(message?.parts.map(({ type }) => type)).toEqual([
        'step-start',
        'reasoning',
        'text',
        'source-url',
        'dynamic-tool',
        'file',
        'data-part',
        'data-generic',
        'step-start',
        'dynamic-tool',
      ]);
      expect(message?.parts[1]).toMatchObject({ text: 'Thinking of it.', state: 'done' });
      expect(message?.parts[2]).toMatchObject({ text: 'It is “so”: \\ ✓.\n', state: 'done' });
      expect(message?.parts[3]).toMatchObject({ url: 'https://example.com/a', title: 'A' });
      expect(message?.parts[4]).toMatchObject({ toolName: 'look', input: { at: 'sky' }, output: { colour: 'blue' } });
      expect(message?.parts[5]).toMatchObject({
        mediaType: 'image/png',
        url: expect.stringMatching(/^data:image\/png;/),
      });
      expect(message?.parts[6]).toMatchObject({ data: { content: '{"answer":42}' } });
      expect(message?.parts[7]).toMatchObject({ data: { kind: 'progress', done: 1 } });
      expect(question(chat)).toMatchObject({ state: 'input-available', input: { message: 'Shall I go on?' } });
      await answer(chat, true);
      expect(lastText(chat)).toContain('You said true to the sky. 0 1 2 3 4 ');
      expect(chat.messages).toHaveLength(2);
      expect(question(chat)).toMatchObject({ state: 'output-available', output: true });
      expect(chat.lastMessage?.metadata).toMatchObject({ status: 'completed', run_id: chat.lastMessage?.id });
      const read = await transcript(served, chat, 'showcase');
      expect(read.map(({ id, role }) => [id, role])).toEqual(chat.messages.map(({ id, role }) => [id, role]));
      expect(read.map(textOf)).toEqual(chat.messages.map(textOf));
    });

    it('sends one answer, and no more after it', async () => {
      const served = await serveAll();
      let posts = 0;
      const fetch: typeof globalThis.fetch = (url, init) => {
        posts += init?.method === 'POST' ? 1 : 0;
        return globalThis.fetch(url, init);
      };
      const chat = open(served, 'ask', { fetch });
      await chat.sendMessage({ text: 'hi' });
      await answer(chat, 'yes');
      expect([lastText(chat), posts]).toEqual(['before. You said yes.', 2]);
    });

    it('gets the answer of a turn that a page has left, from its beginning', async () => {
      const served = await serveAll();
      const left = open(served, 'ask');
      await left.sendMessage({ text: 'hi' });
      // The page loads: the transcript has no unfinished answer.
      const messages = await transcript(served, left, 'ask');
      expect(messages.map(({ role }) => role)).toEqual(['user']);
      const chat = open(served, 'ask', { messages });
      await chat.resumeStream();
      await settled(chat);
      expect(plain(chat.messages)).toEqual(plain(left.messages));
      await answer(chat, 'yes');
      expect(lastText(chat)).toBe('before. You said yes.');
      // Now there is nothing to resume.
      const later = open(served, 'ask', { messages: await transcript(served, chat, 'ask') });
      await later.resumeStream();
      expect([later.status, later.messages.length, lastText(later)]).toEqual(['ready', 2, 'before. You said yes.']);
    });

    it('gets a turn with its answered questions, up to the open one', async () => {
      const served = await serveAll();
      const left = open(served, 'twice');
      await left.sendMessage({ text: 'hi' });
      await answer(left, 'yes');
      const chat = open(served, 'twice', { messages: await transcript(served, left, 'twice') });
      await chat.resumeStream();
      expect(plain(chat.messages)).toEqual(plain(left.messages));
      expect([lastText(chat), question(chat)?.state]).toEqual(['yes. ', 'input-available']);
      await answer(chat, 'I am');
      expect([lastText(chat), chat.error]).toEqual(['yes. I am. ', undefined]);
      expect((await transcript(served, chat, 'twice')).map(textOf)).toEqual(['hi', 'yes. I am. ']);
    });

    it('gets what an agent says while it awaits, after the reply, and may answer also after a reload', async () => {
      const said = new Subject<string>();
      const served = await serve([talks(said)]);
      const left = open(served, 'talks');
      await left.sendMessage({ text: 'hi' });
      const run = left.lastMessage?.id ?? '';
      for (const text of ['two ', 'three ']) said.next(text);
      await expect.poll(async () => JSON.stringify(await eventsOf(served, run))).toContain('three ');
      const chat = open(served, 'talks', { messages: await transcript(served, left, 'talks') });
      await chat.resumeStream();
      expect([chat.status, plain(chat.messages)]).toEqual(['ready', plain(left.messages)]);
      const answered = answer(chat, 'yes');
      await expect.poll(() => lastText(chat)).toBe('one two three You said yes.');
      said.next(' four');
      said.complete();
      await answered;
      expect([chat.status, chat.error, lastText(chat)]).toEqual([
        'ready',
        undefined,
        'one two three You said yes. four',
      ]);
      expect((await transcript(served, chat, 'talks')).map(textOf)).toEqual(chat.messages.map(textOf));
    });

    it('goes on where a tool has returned keys that could change a prototype', async () => {
      const served = await serveAll();
      const chat = open(served, 'pollutes', { sends: false });
      for (const text of ['one', 'two']) await chat.sendMessage({ text });
      expect([chat.error, chat.messages.length]).toEqual([undefined, 4]);
      const messages = await transcript(served, chat, 'pollutes');
      expect(messages.at(-1)?.parts.at(-1)?.output).toEqual({ kept: 1, a: [{}] });
      const loaded = open(served, 'pollutes', { messages, sends: false });
      await loaded.sendMessage({ text: 'three' });
      expect(loaded.error).toBeUndefined();
    });

    it('shows the error of a run, with its code in the metadata', async () => {
      const served = await serveAll();
      const chat = open(served, 'fails');
      await chat.sendMessage({ text: 'write' });
      expect([chat.status, chat.error?.message]).toEqual(['error', 'The pen is empty.']);
      expect(lastText(chat)).toBe('I begin. ');
      expect(chat.lastMessage?.metadata).toMatchObject({ error: { code: 'no_ink', message: 'The pen is empty.' } });
      expect((await transcript(served, chat, 'fails')).map(textOf)).toEqual(['write', 'I begin. ']);
    });

    it('shows why the server refused a request', async () => {
      const chat = open(await serveAll(), 'missing');
      await chat.sendMessage({ text: 'hi' });
      expect([chat.status, chat.error?.message]).toEqual([
        'error',
        'There is no agent missing; GET /agents lists them.',
      ]);
    });

    it('shows what it has when the run is cancelled', async () => {
      const served = await serveAll();
      const chat = open(served, 'hangs');
      const sent = chat.sendMessage({ text: 'hi' });
      await expect.poll(() => lastText(chat)).toBe('Once ');
      await served.post(`/runs/${chat.lastMessage?.id}/cancel`);
      await sent;
      expect([chat.status, lastText(chat)]).toEqual(['ready', 'Once ']);
      expect(chat.lastMessage?.metadata).toMatchObject({ status: 'cancelled' });
    });

    it('cancels a run by stopping, where the request says so', async () => {
      const served = await serveAll();
      const chat = open(served, 'hangs', { headers: { 'On-Disconnect': 'cancel' }, fetch: resumingFetch() });
      const sent = chat.sendMessage({ text: 'hi' });
      await expect.poll(() => lastText(chat)).toBe('Once ');
      await chat.stop();
      await sent;
      expect(chat.status).toBe('ready');
      const status = async (): Promise<string> =>
        (await (await served.get(`/runs/${chat.lastMessage?.id}`)).json()).status;
      await expect.poll(status).toBe('cancelled');
    });

    it('runs a tool of the page that the agent asks for', async () => {
      const served = await serveAll();
      const calls: unknown[] = [];
      const chat: Chat = open(served, 'browses', {
        onToolCall: ({ toolCall }: { toolCall: { toolCallId: string; toolName: string; input: unknown } }) => {
          calls.push([toolCall.toolName, toolCall.input]);
          void chat.addToolResult({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: { lat: 1 } });
        },
      });
      await chat.sendMessage({ text: 'hi' });
      await expect.poll(() => lastText(chat)).toBe('You are at {"lat":1}.');
      expect(calls).toEqual([['locate', { exact: true }]]);
    });

    it('gives the agent its system messages, and what else the page sends', async () => {
      const messages = [{ id: 's', role: 'system' as const, parts: [{ type: 'text', text: 'Be brief.' }] }];
      const chat = open(await serveAll(), 'sees', {
        messages,
        body: { model: 'large', tools: { find: { parameters: {} } } },
      });
      await chat.sendMessage({ text: 'hi' });
      expect(JSON.parse(lastText(chat))).toEqual({
        protocol: 'ai-sdk',
        conversation: 'chat',
        instructions: 'Be brief.',
        metadata: { model: 'large' },
        tools: [{ name: 'find', parameters: {} }],
      });
    });

    it('sends files and data, and gets them back in the transcript', async () => {
      const served = await serveAll();
      const parts = [
        { type: 'file', mediaType: 'text/csv', filename: 'a.csv', url: 'data:text/csv;base64,YSxi' },
        { type: 'file', mediaType: 'image/png', url: 'https://example.com/a.png' },
        { type: 'data-place', data: { lat: 1 } },
        { type: 'text', text: 'See these.' },
      ];
      const chat = open(served, 'echo');
      await chat.sendMessage({ parts, metadata: { draft: 1 } });
      expect(chat.error).toBeUndefined();
      const [said] = await transcript(served, chat, 'echo');
      expect(said).toEqual(plain(chat.messages[0]));
      expect(said).toMatchObject({ parts, metadata: { draft: 1 } });
    });

    describe('that answers a message anew', () => {
      it('has a session without the answer before', async () => {
        const served = await serveAll();
        const chat = open(served, 'counts', { fetch: resumingFetch() });
        for (const text of ['one', 'two', 'three']) await chat.sendMessage({ text });
        const all = 'three after [one | one after [] | two | two after [one | one after []]]';
        expect(lastText(chat)).toBe(all);
        const [, first, , second, , third] = chat.messages;
        await chat.regenerate();
        expect(lastText(chat)).toBe(all);
        expect(chat.lastMessage?.id).not.toBe(third?.id);
        await chat.regenerate({ messageId: second?.id });
        expect(lastText(chat)).toBe('two after [one | one after []]');
        expect((await served.get(`/runs/${third?.id}`)).status).toBe(404);
        expect((await transcript(served, chat, 'counts')).map(textOf)).toEqual(chat.messages.map(textOf));
        await chat.regenerate({ messageId: first?.id });
        expect(lastText(chat)).toBe('one after []');
      });

      it('has a session without the edited message and what came after it', async () => {
        const served = await serveAll();
        const chat = open(served, 'counts');
        for (const text of ['one', 'two', 'three']) await chat.sendMessage({ text });
        await chat.sendMessage({ text: 'other', messageId: chat.messages[2]?.id });
        expect(lastText(chat)).toBe('other after [one | one after []]');
        const read = await transcript(served, chat, 'counts');
        expect(read.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id));
        expect(read.map(textOf)).toEqual(chat.messages.map(textOf));
      });

      it('is told to wait for a run that is not final', async () => {
        const served = await serveAll();
        const chat = open(served, 'ask');
        await chat.sendMessage({ text: 'hi' });
        await chat.regenerate();
        expect([chat.status, chat.error?.message]).toEqual(['error', expect.stringMatching(/is awaiting; cancel it/)]);
      });

      it('removes only its own answers where it has the first ones from another chat', async () => {
        const served = await serveAll();
        const chat = open(served, 'counts');
        for (const text of ['one', 'two']) await chat.sendMessage({ text });
        const fork = open(served, 'counts', { id: 'fork', messages: chat.messages });
        await fork.sendMessage({ text: 'three' });
        await fork.regenerate();
        expect([fork.error, lastText(fork)]).toEqual([undefined, 'three after []']);
        expect(await transcript(served, chat, 'counts')).toHaveLength(4);
        expect(await transcript(served, fork, 'counts')).toHaveLength(2);
      });
    });
  });
}
