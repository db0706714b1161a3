import { expect, it, onTestFinished, vi } from 'vitest';
import { connect } from '../../src/cli/connect.ts';
import { terminal } from '../../src/cli/terminal/terminal.ts';
import { turn } from '../support/turn.ts';

/** Replaces fetch; records its calls and the notes printed. */
function mockFetch(fetch: typeof globalThis.fetch) {
  const calls = vi.spyOn(globalThis, 'fetch').mockImplementation(fetch);
  const notes: string[] = [];
  const note = vi.spyOn(terminal, 'note').mockImplementation((text) => void notes.push(text));
  // The client waits with a timer of rxjs, which is an interval.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  onTestFinished(() => {
    vi.useRealTimers();
    calls.mockRestore();
    note.mockRestore();
  });
  return { calls, notes };
}
it('prints a note after 5 s without a response, and fails after 30 s', async () => {
  const { notes } = mockFetch(() => new Promise(() => {}));
  const ended = connect({ url: 'http://rivulet.test:81/', header: [] })
    .agents()
    .catch((error: unknown) => error);
  await turn();
  vi.advanceTimersByTime(5_000);
  expect(notes).toEqual(['No response from rivulet.test:81 yet; still waiting.']);
  vi.advanceTimersByTime(25_000);
  expect(await ended).toMatchObject({ code: 'silent' });
});

it('prints the cause and the delay of each reconnection, and fails after the last attempt', async () => {
  const { calls, notes } = mockFetch(() =>
    Promise.reject(new TypeError('fetch failed', { cause: new Error('no route') })),
  );
  const events = connect({ url: 'http://rivulet.test/', header: [] }, 2).watch('11111111-2222-4333-8444-555555555555');
  const ended = events.forEach(() => {}).catch((error: unknown) => error);
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    while (notes.length < attempt) await turn();
    expect(notes[attempt - 1]).toMatch(new RegExp(`no route\\); retrying in \\d\\.\\d s, ${attempt} of 2\\.$`));
    await turn();
    vi.advanceTimersByTime(10_000);
  }
  expect(await ended).toMatchObject({ code: 'network' });
  expect(calls).toHaveBeenCalledTimes(3);
});

it('sends user and password of the URL as HTTP Basic authentication instead of in the URL', async () => {
  const { calls } = mockFetch(async () => Response.json({ agents: [] }));
  await connect({ url: 'http://me:p%40ss@rivulet.test/acp', header: [['X-Key', '1']] }).agents();
  const [url, init] = calls.mock.calls[0] ?? [];
  expect(String(url)).toBe('http://rivulet.test/acp/agents?limit=1000');
  const headers = new Headers(init?.headers);
  expect(headers.get('Authorization')).toBe(`Basic ${Buffer.from('me:p@ss').toString('base64')}`);
  expect(headers.get('X-Key')).toBe('1');
});
