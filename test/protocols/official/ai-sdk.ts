import { expect } from 'vitest';
import { type Chat, type ChatMessage, openChat, type Version } from '../ai-sdk/chats.ts';
import { askedAnew, type Chats, half, runsOf, type ServeChats, turns } from './agent.ts';
import { listed, type Seen } from './seen.ts';

/** The calls with their states, and how the last answer ends, as the parts of the messages have them. */
function shown(messages: readonly ChatMessage[]): string {
  const answers = messages.filter(({ role }) => role === 'assistant');
  const calls = answers.flatMap(({ parts }) =>
    parts.flatMap(({ toolName, state }) => (toolName === undefined ? [] : [`\`${toolName}\` ${state}`])),
  );
  const cut = answers.filter(({ parts }) => parts.some(({ text }) => text === half));
  return listed([
    ...calls,
    ...cut.map((answer) => (JSON.stringify(answer).includes('"length"') ? 'cut off: length' : 'cut off: not said')),
  ]);
}

export async function aiSdk(serve: ServeChats, version: Version, open: typeof openChat = openChat): Promise<Seen> {
  const asks = version === 'ai5' ? {} : { body: { approvals: true } };
  const chatOf = ({ url }: Chats, messages: readonly ChatMessage[] = []): Chat =>
    open(version, { api: `${url}/ai/chat`, id: 'c', messages, ...asks });
  const begin = async (chats: Chats) => {
    const chat = chatOf(chats);
    const sent = chat.sendMessage({ text: turns[0] });
    await chats.working();
    await expect.poll(() => shown(chat.messages)).not.toBe('nothing');
    return { chat, sent };
  };
  const chats = await serve();
  const { chat, sent } = await begin(chats);
  const working = shown(chat.messages);
  chats.release();
  await sent;
  await chat.sendMessage({ text: turns[1] });
  const asked = chat.lastMessage?.parts.find(({ toolName }) => toolName === 'await');
  if (chat.addToolApprovalResponse !== undefined && asked?.state === 'approval-requested')
    await chat.addToolApprovalResponse({ id: asked?.toolCallId, approved: true });
  else await chat.addToolResult({ tool: 'await', toolCallId: asked?.toolCallId, output: true });
  await expect.poll(() => [chat.status, chat.lastMessage?.parts.at(-1)?.type]).toEqual(['ready', 'text']);
  await chat.sendMessage({ text: turns[2] });
  const loaded: { messages: ChatMessage[] } = await (await fetch(`${chats.url}/ai/chat/c`)).json();

  const others = await serve();
  const stopped = await begin(others);
  await stopped.chat.stop();
  await stopped.sent;
  // It drops a run that is at work, so it asks to cancel that one.
  const anew = stopped.chat.regenerate({ headers: { 'If-Busy': 'interrupt' } });
  await askedAnew(others, anew);
  others.release();
  await anew;
  const error = stopped.chat.error === undefined ? [] : ['an error'];
  return {
    working,
    end: shown(chat.messages),
    reload: shown(loaded.messages),
    again: [...error, shown(stopped.chat.messages), await runsOf(others)].join('; '),
  };
}
