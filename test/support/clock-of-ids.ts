/**
 * Set up for each file of the default suite. Its files share a process, and ids never go back: a test that leaves their
 * clock ahead makes every later test of retention wait for that time.
 */
import { afterAll, expect } from 'vitest';
import { madeAt, newId } from '../../src/engine/ids.ts';

/** Milliseconds. Ids may run ahead by a few: one millisecond has 4,096, and tests make more. */
const most = 1_000;

afterAll(() => {
  expect(madeAt(newId()) - Date.now(), 'milliseconds by which ids are ahead of the clock').toBeLessThan(most);
});
