import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { rows } from '../../src/cli/settings.ts';

const page = readFileSync('docs/configuration.md', 'utf8');
/** The cells of each row of the page's table. */
const table = [...page.matchAll(/^\| `([\w.]+)`(.*)\|$/gm)].map(([, key, rest = '']) => [
  key,
  ...rest
    .split(' | ')
    .slice(1)
    .map((cell) => cell.replaceAll('`', '').trim()),
]);

function defaultOf(value: unknown): string {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return '';
  return Array.isArray(value) ? value.join(', ') : String(value);
}

it('the table of docs/configuration.md has every setting, as the schema declares it', () => {
  const declared = rows()
    .filter(({ path, names }) => path[0] !== 'limits' || names.flag !== undefined)
    .map(({ path, names, schema }) => [
      path.join('.'),
      names.flag?.split(' ')[0] ?? '',
      [names.env, names.secret && `${names.env}_FILE`].filter(Boolean).join(', '),
      defaultOf(schema.default),
      schema.description,
    ]);
  expect(table).toEqual(declared);
});
