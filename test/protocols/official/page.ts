import { readFileSync, writeFileSync } from 'node:fs';

/** The page of the official clients. `npm run docs:clients` writes its table. */
const page = 'docs/clients.md';
const table = /^\| Client .*\n(?:\|.*\n)+/m;

const columns = ['Client', 'While the tool works', 'At the end', 'After a reload', 'After Stop and Regenerate'];

/** The rows of the page, without the head: the name of a client, and its cells. */
function rowsIn(text: string): string[][] {
  const lines = table.exec(text)?.[0].trim().split('\n').slice(2) ?? [];
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** What the page says of a client; undefined where it has no row. */
export const rowOf = (name: string): string[] | undefined =>
  rowsIn(readFileSync(page, 'utf8'))
    .find(([client]) => client === name)
    ?.slice(1);

/** Writes the row of a client. The rows are sorted by their names. */
export function writeRow(name: string, cells: readonly string[]): void {
  const text = readFileSync(page, 'utf8');
  const others = rowsIn(text).filter(([client]) => client !== name);
  const rows = [...others, [name, ...cells]].sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
  const widths = columns.map((column, index) => Math.max(column.length, ...rows.map((row) => row[index]?.length ?? 0)));
  const lineOf = (row: readonly string[]): string =>
    `| ${row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join(' | ')} |\n`;
  const written = [columns, widths.map((width) => '-'.repeat(width)), ...rows].map(lineOf).join('');
  writeFileSync(
    page,
    text.replace(table, () => written),
  );
}
