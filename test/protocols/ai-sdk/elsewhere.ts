import { expect } from 'vitest';
import { resumingFetch } from '../../../src/client/ai-sdk.ts';
import { showcase, ticks } from './agents.ts';
import { openChat } from './chats.ts';
import { cutting, shown, turnOf } from './cuts.ts';

export const agents = [
  showcase,
  { ...showcase, manifest: { ...showcase.manifest, name: 'durable' }, options: { durable: true } },
  ticks,
];

/** A `fetch` whose requests go to one node after the other. */
function rotating(urls: readonly string[]): typeof globalThis.fetch {
  let calls = 0;
  return (input, init) => {
    calls += 1;
    const { pathname, search } = new URL(String(input));
    return fetch(`${urls[calls % urls.length]}${pathname}${search}`, init);
  };
}

/** Turns whose every reconnect lands on another node, cut after so many bytes, are as those that nothing cuts. */
export async function expectTheSameElsewhere(urls: readonly string[], cuts: readonly number[]): Promise<void> {
  const open = (agent: string, fetch: typeof globalThis.fetch) =>
    openChat('ai', { api: `${urls[0]}/ai/${agent}`, id: crypto.randomUUID(), fetch });
  for (const agent of ['showcase', 'durable']) {
    const whole = shown(await turnOf(open(agent, fetch)));
    for (const bytes of cuts) {
      const send = cutting([bytes, bytes, -2, bytes, bytes, bytes], bytes % 2 === 0 ? 'break' : 'end', rotating(urls));
      const chat = await turnOf(open(agent, resumingFetch({ fetch: send, delay: 1 })));
      expect(shown(chat), `${agent}, cut after ${bytes} bytes`).toEqual(whole);
    }
  }
  // Live: its tokens come one by one.
  const tokens = Array.from({ length: 40 }, (_, n) => `${n} `).join('');
  for (const bytes of cuts) {
    const send = cutting(Array(6).fill(bytes), 'break', rotating(urls));
    const chat = open('ticks', resumingFetch({ fetch: send, delay: 1 }));
    await chat.sendMessage({ text: '40' });
    expect([chat.error, chat.lastMessage?.parts.at(-1)?.text], `cut after ${bytes} bytes`).toEqual([undefined, tokens]);
  }
}
