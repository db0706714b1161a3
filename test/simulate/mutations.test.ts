import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { mutations } from './mutations.ts';

const root = resolve(import.meta.dirname, '../..');

it.each(mutations)('the sources still have what this defect changes: $name', ({ changes }) => {
  for (const { file, find } of changes) expect(readFileSync(resolve(root, file), 'utf8').split(find)).toHaveLength(2);
});
