import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { newFolder } from '../../support/folder.ts';
import { serve } from '../../support/serve.ts';
import { expectExactCuts, slowly } from './cuts.ts';

const folder = newFolder(afterAll);

it.each([
  ['memory', undefined],
  ['SQLite', `sqlite:${join(folder, 'runs.db')}`],
])('the stream of a response is whole, wherever it is cut, in %s', async (_, store) => {
  const { url } = await serve([slowly], { docs: false, playground: false, ...(store !== undefined && { store }) });
  expect(await expectExactCuts([url], 1_783)).toBeGreaterThan(10);
});
