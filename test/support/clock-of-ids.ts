/**
 * Set up for each file of the default suite. Its files share a process, and ids never go back: a test that leaves their
 * clock ahead makes every later test of retention wait for that time.
 */
import { afterAll, expect } from 'vitest';
import { madeAt, newId } from '../../src/engine/ids.ts';

afterAll(() => {
  expect(madeAt(newId()) - Date.now(), 'milliseconds by which ids are ahead of the clock').toBeLessThan(1_000);
});
