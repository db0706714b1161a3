import { styleText } from 'node:util';

/** Lines of columns, each at least as wide as its widest cell; on a terminal no line is longer than that. */
export function table(head: string[] | undefined, rows: readonly string[][], widths: readonly number[] = []): string {
  const lines = rows.map((row) => row.map((cell) => cell.replace(/[\s\p{Cc}]+/gu, ' ')));
  const all = head === undefined ? lines : [head, ...lines];
  const columns = all[0]?.map((_, at) => Math.max(widths[at] ?? 0, ...all.map((cells) => cells[at]?.length ?? 0)));
  const { isTTY, columns: terminal } = process.stdout;
  const room = isTTY && terminal > 0 ? terminal : Number.POSITIVE_INFINITY;
  return all
    .map((cells, index) => {
      const line = cells
        .map((cell, at) => cell.padEnd(columns?.[at] ?? 0))
        .join('  ')
        .trimEnd();
      const fitting = line.length > room ? `${line.slice(0, room - 1)}…` : line;
      return `${index === 0 && head !== undefined ? styleText('bold', fitting, { stream: process.stdout }) : fitting}\n`;
    })
    .join('');
}
