import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { rows } from '../../src/cli/settings/settings.ts';

const limits = rows()
  .map(({ path }) => path)
  .filter(([group]) => group === 'limits')
  .map(([, name = '']) => name);

it('each limit has one row, in docs/durability.md or docs/security.md', () => {
  const text = ['durability', 'security'].map((page) => readFileSync(`docs/${page}.md`, 'utf8')).join('\n');
  const documented = [...text.matchAll(/^\| `(\w+)` +\| [^|]+\| /gm)].map(([, name = '']) => name);
  expect(limits.length).toBeGreaterThan(30);
  expect(documented.filter((name) => limits.includes(name)).toSorted()).toEqual(limits.toSorted());
});
