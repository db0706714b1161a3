import { describe, expect, it } from 'vitest';
import { resumingFetch } from '../../../src/client/ai-sdk.ts';
import { serve } from '../../support/serve.ts';
import { cutting } from '../cutting.ts';
import { showcase } from './agents.ts';
import { type Chat, openChat, type Version } from './chats.ts';
import { shown } from './turns.ts';

/** What `useChat` calls when its page is visible again, from 5.0.274, 6.0.304 and 7.0.138 on. */
interface Resumable {
  readonly '~resumeStreamIfDisconnected': () => Promise<void>;
}
const pageIsVisible = (chat: Chat): Promise<void> => (chat as Chat & Resumable)['~resumeStreamIfDisconnected']();
const ask = { id: 'm1', parts: [{ type: 'text', text: 'the sky' }] };

/** A chat whose turn breaks off; `online` says whether a request after that comes through. */
async function breaking(version: Version, online: () => boolean) {
  const served = await serve([showcase]);
  const open = (send: typeof fetch) =>
    openChat(version, { api: `${served.url}/ai/showcase`, id: crypto.randomUUID(), fetch: send });
  const whole = open(fetch);
  await whole.sendMessage(ask);
  const cuts = cutting([served.url], [1_000]);
  const sent: string[] = [];
  const send: typeof fetch = (input, init) => {
    sent.push(String(init?.method ?? 'GET'));
    return sent.length === 1 || online() ? cuts.fetch(input, init) : Promise.reject(new TypeError('fetch failed'));
  };
  const chat = open(resumingFetch({ fetch: send, retries: 3, delay: 1 }));
  return { whole, chat, sent, cuts };
}

describe('a page that is visible again, with a chat over resumingFetch', () => {
  it.each<Version>(['ai', 'ai5'])('does not resume a stream that resumingFetch has resumed (%s)', async (version) => {
    const { whole, chat, sent, cuts } = await breaking(version, () => true);
    const turn = chat.sendMessage(ask);
    // Before, during and after the break.
    const seen = pageIsVisible(chat);
    await expect.poll(() => cuts.cuts(), { interval: 1 }).toBe(1);
    await Promise.all([turn, seen, pageIsVisible(chat)]);
    await pageIsVisible(chat);
    expect(shown(chat)).toEqual(shown(whole));
    expect(sent).toEqual(['POST', 'GET']);
  });

  // ai 5.0.277 adds the answer to the part that it has: it does not know that a resumed stream begins anew.
  it('resumes once what resumingFetch has given up, and shows the answer once', async () => {
    let online = false;
    const { whole, chat, sent } = await breaking('ai', () => online);
    await chat.sendMessage(ask);
    expect(chat.error).toBeInstanceOf(TypeError);
    online = true;
    const before = sent.length;
    await pageIsVisible(chat);
    await pageIsVisible(chat);
    expect(shown(chat)).toEqual(shown(whole));
    expect(sent.slice(before)).toEqual(['GET']);
  });
});
