import { describe, expect, it } from 'vitest';
import { rows } from '../../bench/projections.ts';
import { check } from '../../bench/works/protocols.ts';
import { frame } from '../../src/http/sse/frames.ts';

describe('the bench of protocols', () => {
  it.each(rows.map((row) => [row.id, row] as const))('%s has each token once, in order', async (id, { prepare }) => {
    const make = await prepare();
    // A protocol that is not there has no projection.
    if (make !== undefined) await check(id, make, 50);
  });

  it('begins with the row that the others are compared with', () => {
    expect(rows[0]?.id).toBe('ACP');
    const libraries = rows.flatMap(({ library }) => library ?? []);
    expect(rows.map(({ id }) => id)).toEqual(expect.arrayContaining(libraries));
  });

  it.each([
    ['a missing token', [0, 2]],
    ['a duplicate', [0, 1, 1, 2]],
    ['a wrong order', [0, 2, 1]],
    ['no last token', [0, 1]],
  ])('refuses %s', async (_, tokens) => {
    const make = (_log: unknown, write: (frames: string) => void): void => {
      for (const n of tokens) write(frame(n, `"token ${n} "`));
    };
    await expect(check('a stub', make, 3)).rejects.toThrow('a stub: the frames do not have the tokens in order');
  });
});
