import { describe, expect, it } from 'vitest';
import { SharedReads } from '../../src/engine/log/shared-reads.ts';

/** Reads that the test answers. */
function setUp(maxChars = 100) {
  const asked: string[] = [];
  const answers = new Map<string, (answer: string) => void>();
  const reads = new SharedReads<string>(maxChars, ({ length }) => length);
  const get = (key: string): Promise<string> =>
    reads.get(key, () => {
      asked.push(key);
      return new Promise((resolve) => answers.set(key, resolve));
    });
  return { reads, asked, get, answer: (key: string, text: string) => answers.get(key)?.(text) };
}

describe('reads that are shared', () => {
  it('are made once at a time for each key, and answered from memory afterwards', async () => {
    const { asked, get, answer } = setUp();
    const both = [get('a'), get('a')];
    answer('a', 'text');
    expect(await Promise.all([...both, get('a')])).toEqual(['text', 'text', 'text']);
    expect(asked).toEqual(['a']);
  });

  it('forget the oldest answers when they have more characters than allowed, with their keys', async () => {
    const { asked, get, answer } = setUp(20);
    for (const key of ['a', 'b', 'c']) {
      const read = get(key);
      answer(key, 'x'.repeat(8));
      await read;
    }
    await get('c');
    void get('a');
    expect(asked).toEqual(['a', 'b', 'c', 'a']);
    const long = get('d');
    answer('d', 'too long for all that may be kept');
    await long;
    void get('d');
    expect(asked.at(-1)).toBe('d');
  });

  it('are made again after an error', async () => {
    const { reads, asked, get } = setUp();
    await expect(reads.get('a', () => Promise.reject(new Error('away')))).rejects.toThrow('away');
    void get('a');
    expect(asked).toEqual(['a']);
  });

  it('keep nothing after `clear`, nor what was being read', async () => {
    const { reads, asked, get, answer } = setUp();
    const read = get('a');
    reads.clear();
    answer('a', 'text');
    expect(await read).toBe('text');
    void get('a');
    expect(asked).toEqual(['a', 'a']);
  });
});
