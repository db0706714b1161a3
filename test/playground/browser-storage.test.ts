import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Login, StoredSessions } from '../../src/playground/app/browser-storage.ts';

/** What a browser has for the page; `writes` are the texts that the page has stored. */
function storageOf(items: Record<string, string> = {}) {
  const kept = new Map(Object.entries(items));
  const writes: string[] = [];
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, text: string) => {
      writes.push(text);
      kept.set(key, text);
    },
    removeItem: (key: string) => void kept.delete(key),
  };
  return { storage, kept, writes };
}

const session = (id: string, title = `Title of ${id}`) => ({
  id,
  agent: 'echo',
  title,
  createdAt: '2026-01-01T00:00:00Z',
});

beforeEach(() => void vi.stubGlobal('location', { reload: vi.fn() }));
afterEach(() => void vi.unstubAllGlobals());

describe('the stored sessions', () => {
  it('are written once for a session that is added, so that other tabs never see them without it', () => {
    const { storage, writes } = storageOf();
    vi.stubGlobal('localStorage', storage);
    const sessions = new StoredSessions();
    for (const id of ['a', 'b']) sessions.add(session(id));
    sessions.add(session('a', 'Another title'));
    expect(writes.map((text) => JSON.parse(text))).toEqual([
      [session('a')],
      [session('b'), session('a')],
      [session('a'), session('b')],
    ]);
  });
});

describe('the login', () => {
  it('keeps nothing of a token that is forgotten', () => {
    const { storage, kept } = storageOf({ 'rivulet.token': 'secret' });
    vi.stubGlobal('sessionStorage', storage);
    const login = new Login();
    expect(login.token).toBe('secret');
    login.forget();
    expect([...kept.keys()]).toEqual([]);
    expect(location.reload).toHaveBeenCalledOnce();
  });
});
