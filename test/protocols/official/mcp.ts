import { expect } from 'vitest';
import type { clients, Result } from '../mcp/clients.ts';
import { half, runsOf, type ServeChats, statesOf, turns } from './agent.ts';
import { keepsNothing, listed, type Seen } from './seen.ts';

/** A host of MCP: the agent is a tool, and each turn a call of it. */
export async function mcp(serve: ServeChats, open: (typeof clients)[number][1]): Promise<Seen> {
  const chats = await serve();
  const questions: string[] = [];
  const clientOf = (url: string) =>
    open(url, {
      answer: ({ message }) => {
        questions.push(`\`elicitation/create\` "${message}"`);
        return { action: 'accept', content: { answer: true } };
      },
    });
  const client = await clientOf(chats.url);
  const progress: string[] = [];
  const say = (input: string): Promise<Result> =>
    client.call(
      'chat',
      { input, session_id: 'c' },
      { onprogress: ({ message }) => void progress.push(String(message)) },
    );
  const first = say(turns[0]);
  await chats.working();
  await expect.poll(() => progress.at(-1)).toBe('weather');
  const working = listed(progress.map((one) => `progress "${one}"`));
  chats.release();
  const results = [await first];
  for (const input of turns.slice(1)) results.push(await say(input));
  const textIn = ({ content }: Result): string => content.map(({ text }) => text).join('');
  const end = results.map((result) => {
    const cut =
      textIn(result) !== half
        ? ''
        : JSON.stringify(result).includes('"length"')
          ? ', cut off: length'
          : ', cut off: not said';
    return `${result.isError ? 'error' : 'text'}${cut}`;
  });
  const others = await serve();
  const other = await clientOf(others.url);
  const stop = new AbortController();
  const stopped = other
    .call('chat', { input: turns[0] }, { signal: stop.signal, onprogress: () => {} })
    .catch(() => {});
  await others.working();
  stop.abort();
  await stopped;
  await expect.poll(() => statesOf(others)).toContain('cancelled');
  others.release();
  const again = await other.call('chat', { input: turns[0] });
  return {
    working,
    end: listed([...questions, ...end]),
    reload: keepsNothing,
    again: [textIn(again) === '' ? 'nothing' : 'text', await runsOf(others)].join('; '),
  };
}
