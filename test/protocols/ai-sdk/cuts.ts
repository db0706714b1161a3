import { expect } from 'vitest';
import type { Chat } from './chats.ts';

/** How a response is cut: its connection breaks, or it ends as if it were complete. */
export type Cut = 'break' | 'end';

/**
 * A `fetch` whose first responses are cut after a number of bytes each. The name resolution, the headers and the request
 * itself fail as well, where the number is negative: -1 before the request is sent, -2 when its response has come.
 */
export function cutting(bytes: readonly number[], cut: Cut, send: typeof globalThis.fetch = fetch) {
  const state = { calls: 0, cuts: 0 };
  const cutFetch: typeof globalThis.fetch = async (input, init) => {
    const left = bytes[state.calls] ?? Number.POSITIVE_INFINITY;
    state.calls += 1;
    if (left === -1) {
      state.cuts += 1;
      throw new TypeError('fetch failed');
    }
    const response = await send(input, init);
    if (left === -2) {
      state.cuts += 1;
      await response.body?.cancel();
      throw new TypeError('fetch failed');
    }
    if (left === Number.POSITIVE_INFINITY || response.body === null) return response;
    return new Response(response.body.pipeThrough(cutAfter(left, cut, () => (state.cuts += 1))), response);
  };
  return Object.assign(cutFetch, { state });
}

function cutAfter(bytes: number, cut: Cut, onCut: () => void): TransformStream<Uint8Array, Uint8Array> {
  let left = bytes;
  return new TransformStream({
    transform(chunk, controller) {
      if (chunk.length < left) {
        left -= chunk.length;
        controller.enqueue(chunk);
        return;
      }
      onCut();
      if (left > 0) controller.enqueue(chunk.subarray(0, left));
      if (cut === 'end') controller.terminate();
      else controller.error(new TypeError('terminated'));
    },
  });
}

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
