import { oneLine } from './printable.ts';
import { terminal } from './terminal.ts';

/** Prints lines of columns, each at least as wide as its widest cell; on a terminal no line is longer than that. */
export function table(head: string[] | undefined, rows: readonly string[][], widths: readonly number[] = []): void {
  const lines = rows.map((row) => row.map((cell) => oneLine(cell)));
  const all = head === undefined ? lines : [head, ...lines];
  const columns = all[0]?.map((_, at) => Math.max(widths[at] ?? 0, ...all.map((cells) => cells[at]?.length ?? 0)));
  for (const [index, cells] of all.entries()) {
    const line = cells
      .map((cell, at) => cell.padEnd(columns?.[at] ?? 0))
      .join('  ')
      .trimEnd();
    const fitting = line.length > terminal.width ? `${line.slice(0, terminal.width - 1)}…` : line;
    terminal.print(fitting, index === 0 && head !== undefined ? 'bold' : undefined);
  }
}
