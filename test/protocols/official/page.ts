import { readFileSync, writeFileSync } from 'node:fs';

/** The page of the official clients. `npm run docs:clients` writes its table. */
const page = 'docs/clients.md';
const table = /^\| Client .*\n(?:\|.*\n)+/m;

const columns = ['Client', 'While the tool works', 'At the end', 'After a reload', 'After Stop and Regenerate'];

/** Clients that show the same share a row, which has their names in its first cell. */
const between = ' · ';

interface Shown {
  readonly name: string;
  readonly cells: readonly string[];
}

/** What the page says of each client. */
function shownIn(text: string): Shown[] {
  const lines = table.exec(text)?.[0].trim().split('\n').slice(2) ?? [];
  return lines.flatMap((line) => {
    const [names = '', ...cells] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    return names.split(between).map((name) => ({ name, cells }));
  });
}

/** What the page says of a client; undefined where it has no row. */
export const rowOf = (name: string): readonly string[] | undefined =>
  shownIn(readFileSync(page, 'utf8')).find((shown) => shown.name === name)?.cells;

/** Writes the row of a client. The rows, and the names of each, are sorted. */
export function writeRow(name: string, cells: readonly string[]): void {
  const text = readFileSync(page, 'utf8');
  const others = shownIn(text).filter((shown) => shown.name !== name);
  const rows = rowsOf([...others, { name, cells }]);
  const widths = columns.map((column, index) => Math.max(column.length, ...rows.map((row) => row[index]?.length ?? 0)));
  const lineOf = (row: readonly string[]): string =>
    `| ${row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join(' | ')} |\n`;
  const written = [columns, widths.map((width) => '-'.repeat(width)), ...rows].map(lineOf).join('');
  writeFileSync(
    page,
    text.replace(table, () => written),
  );
}

function rowsOf(shown: readonly Shown[]): string[][] {
  const rows = new Map<string, readonly [names: string[], cells: readonly string[]]>();
  for (const { name, cells } of shown.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const key = JSON.stringify(cells);
    const row = rows.get(key);
    if (row === undefined) rows.set(key, [[name], cells]);
    else row[0].push(name);
  }
  return [...rows.values()].map(([names, cells]) => [names.join(between), ...cells]);
}
