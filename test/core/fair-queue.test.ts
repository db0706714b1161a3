import { expect, it } from 'vitest';
import { FairQueue } from '../../src/core/fair-queue.ts';
import { turns } from '../support/turn.ts';

it('works on a few tasks of each share at once, and a share with many does not delay another', async () => {
  const queue = new FairQueue({ atOnce: 3, perShare: 2 });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const add = (share: string, name: string): Promise<string> =>
    queue.run(share, () => {
      begun.push(name);
      return new Promise((resolve) => ends.push(() => resolve(name)));
    });
  const all = ['a1', 'a2', 'a3', 'a4'].map((name) => add('a', name)).concat(add('b', 'b1'), add('b', 'b2'));
  await turns(1);
  expect(begun).toEqual(['a1', 'a2', 'b1']);
  ends[0]?.();
  await turns(1);
  expect(begun).toEqual(['a1', 'a2', 'b1', 'a3']);
  ends[1]?.();
  await turns(1);
  expect(begun).toEqual(['a1', 'a2', 'b1', 'a3', 'b2']);
  for (let n = 2; n < 6; n += 1) {
    ends[n]?.();
    await turns(1);
  }
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'b2']);
});

it('goes on after a task that fails', async () => {
  const queue = new FairQueue({ atOnce: 1, perShare: 1 });
  await expect(queue.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await queue.run('a', async () => 'yes')).toBe('yes');
});
