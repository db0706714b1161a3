import { oneLine } from './sanitize.ts';
import { terminal } from './terminal.ts';

/** Prints rows in columns as wide as their widest cell. On a terminal, a line is cut at its width. */
export function table(head: string[] | undefined, rows: readonly string[][], widths: readonly number[] = []): void {
  const lines = rows.map((row) => row.map((cell) => oneLine(cell)));
  const all = head === undefined ? lines : [head, ...lines];
  const columns = all[0]?.map((_, at) => Math.max(widths[at] ?? 0, ...all.map((cells) => cells[at]?.length ?? 0)));
  for (const [index, cells] of all.entries()) {
    const line = cells
      .map((cell, at) => cell.padEnd(columns?.[at] ?? 0))
      .join('  ')
      .trimEnd();
    terminal.print(fitted(line), index === 0 && head !== undefined ? 'bold' : undefined);
  }
}

/** The line, cut at the width of the terminal. */
export const fitted = (line: string): string =>
  line.length > terminal.width ? `${line.slice(0, terminal.width - 1)}…` : line;
