import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { expectedPage } from './configuration-table.ts';

it('docs/configuration.md has every setting; `npm run docs:settings` writes its table', () => {
  expect(readFileSync('docs/configuration.md', 'utf8')).toBe(expectedPage());
});
