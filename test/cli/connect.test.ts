import { expect, it, onTestFinished, vi } from 'vitest';
import { connect } from '../../src/cli/connect.ts';
import { terminal } from '../../src/cli/terminal.ts';

/** What the client asked of fetch, and what was printed beside the answer. */
function watched(fetch: typeof globalThis.fetch) {
  const asked = vi.spyOn(globalThis, 'fetch').mockImplementation(fetch);
  const notes: string[] = [];
  const note = vi.spyOn(terminal, 'note').mockImplementation((text) => void notes.push(text));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
    asked.mockRestore();
    note.mockRestore();
  });
  return { asked, notes };
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('tells after 5 s that a server does not answer, and gives up after 30 s', async () => {
  const { notes } = watched(() => new Promise(() => {}));
  const ended = connect({ url: 'http://rivulet.test:81/', header: [] })
    .agents()
    .catch((error: unknown) => error);
  await turn();
  vi.advanceTimersByTime(5_000);
  expect(notes).toEqual(['No answer from rivulet.test:81 yet; still waiting.']);
  vi.advanceTimersByTime(25_000);
  expect(await ended).toMatchObject({ code: 'silent' });
});

it('says at each break of a stream what is wrong and when it tries again, and gives up after its attempts', async () => {
  const { asked, notes } = watched(() =>
    Promise.reject(new TypeError('fetch failed', { cause: new Error('no route') })),
  );
  const events = connect({ url: 'http://rivulet.test/', header: [] }, 2).watch('11111111-2222-4333-8444-555555555555');
  const ended = events.forEach(() => {}).catch((error: unknown) => error);
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    while (notes.length < attempt) await turn();
    expect(notes[attempt - 1]).toMatch(new RegExp(`no route\\); trying again in \\d\\.\\d s, ${attempt} of 2\\.$`));
    await turn();
    vi.advanceTimersByTime(10_000);
  }
  expect(await ended).toMatchObject({ code: 'network' });
  expect(asked).toHaveBeenCalledTimes(3);
});

it('sends user and password of the URL as HTTP Basic authentication, and not in the URL', async () => {
  const { asked } = watched(async () => Response.json({ agents: [] }));
  await connect({ url: 'http://me:p%40ss@rivulet.test/acp', header: [['X-Key', '1']] }).agents();
  const [url, init] = asked.mock.calls[0] ?? [];
  expect(String(url)).toBe('http://rivulet.test/acp/agents?limit=1000');
  const headers = new Headers(init?.headers);
  expect(headers.get('Authorization')).toBe(`Basic ${Buffer.from('me:p@ss').toString('base64')}`);
  expect(headers.get('X-Key')).toBe('1');
});
