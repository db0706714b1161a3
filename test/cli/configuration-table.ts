/** Writes the table of docs/configuration.md, from the settings of the command line: `npm run docs:settings`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { rows } from '../../src/cli/settings/settings.ts';

const page = 'docs/configuration.md';
/** The table of the page: from its head to the next empty line. */
const table = /^\| Key .*\n(?:\|.*\n)+/m;

const code = (text: string): string => (text === '' ? '' : `\`${text}\``);

function defaultOf(value: unknown): string {
  if (value === undefined) return '';
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const cells = [
  ['Key', 'Flag', 'Variable', 'Default', 'Means'],
  ...rows()
    // The other limits have tables of their own.
    .filter(({ path, names }) => path[0] !== 'limits' || names.flag !== undefined)
    .map(({ path, names: { flag = '', env = '', secret }, schema }) => [
      code(path.join('.')),
      code(flag.split(' ')[0] ?? ''),
      secret === undefined ? code(env) : `${code(env)}, ${code(`${env}_FILE`)}`,
      code(defaultOf(schema.default)),
      schema.description ?? '',
    ]),
];
const widths = (cells[0] ?? []).map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)));
const lineOf = (row: readonly string[]): string =>
  `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |\n`;
const [head = [], ...body] = cells;
const written = [head, widths.map((width) => '-'.repeat(width)), ...body].map(lineOf).join('');

/** The page with the table as it should be. */
export const expectedPage = (): string => readFileSync(page, 'utf8').replace(table, () => written);

if (process.argv[1] === import.meta.filename) writeFileSync(page, expectedPage());
