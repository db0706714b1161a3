import { expect, it } from 'vitest';
import { LocalDispatcher } from '../../src/dispatchers/local.ts';

it('a local dispatcher starts offered runs before the offer returns', async () => {
  const dispatcher = new LocalDispatcher();
  const begun: string[] = [];
  await dispatcher.start(async (run_id) => {
    begun.push(run_id);
    return 'ended';
  });
  const offering = dispatcher.offer(['a', 'b']);
  expect(begun).toEqual(['a', 'b']);
  await offering;
});
