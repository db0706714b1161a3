import { expect } from 'vitest';
import type { Chat } from './chats.ts';

/** What a chat shows, without what differs from run to run. */
export function shown({ status, error, messages }: Chat): unknown {
  const ids = new Map<string, string>();
  const text = JSON.stringify({ status, error: error?.message, messages }, (key, value) => {
    if (key === 'created_at' || key === 'expires_at') return 'a time';
    if (key === 'id' && typeof value === 'string' && !/^[a-z]\d+$/.test(value)) return 'an id';
    return value;
  });
  return JSON.parse(
    text.replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, (id) => {
      if (!ids.has(id)) ids.set(id, `id ${ids.size}`);
      return ids.get(id) ?? id;
    }),
  );
}

/** A turn of two requests: a message, a question and its answer. */
export async function turnOf(chat: Chat): Promise<Chat> {
  await chat.sendMessage({ id: 'm1', parts: [{ type: 'text', text: 'the sky' }] });
  const call = chat.lastMessage?.parts.find(({ toolName }) => toolName === 'await');
  const before = chat.lastMessage?.parts.length;
  await chat.addToolResult({ tool: 'await', toolCallId: call?.toolCallId, output: true });
  await expect.poll(() => chat.error ?? chat.lastMessage?.parts.length, { interval: 1 }).not.toBe(before);
  await expect.poll(() => chat.status, { interval: 1 }).toMatch(/ready|error/);
  return chat;
}

/** The bytes of the stream of a whole turn. */
export async function bytesOf(url: string, { lastMessage }: Chat): Promise<number> {
  return Buffer.byteLength(await (await fetch(`${url}/ai/any/${lastMessage?.id}/stream?startIndex=0`)).text());
}
