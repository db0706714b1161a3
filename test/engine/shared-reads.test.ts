import { expect, it } from 'vitest';
import { SharedReads } from '../../src/engine/log/shared-reads.ts';
import { deferred } from '../support/deferred.ts';

it('shared reads keep nothing after `clear`, nor what was being read', async () => {
  const reads = new SharedReads<string>(100, ({ length }) => length);
  const { promise: answer, resolve } = deferred<string>();
  const read = reads.get('a', () => answer);
  reads.clear();
  resolve('text');
  expect(await read).toBe('text');
  expect(await reads.get('a', async () => 'read again')).toBe('read again');
});
