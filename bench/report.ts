/** Writes results as tables into a Markdown file, and leaves the other parts of the file unchanged. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Goal, judge } from './goals.ts';
import { type Column, type Figures, median, type Result } from './work.ts';

const begin = '<!-- results: written by `npm run bench` -->';
const end = '<!-- end of results -->';
const empty = `# Results\n\n## Findings\n\n${begin}\n\n${end}\n`;

export interface ReportOptions {
  readonly goals: readonly Goal[];
  readonly nameOf: (id: string) => string;
  readonly rounds: number;
  /** The measured commit and the date. */
  readonly at: string;
}

interface TableColumn {
  readonly head: string;
  readonly isText?: boolean;
  cell(id: string, figures: readonly Figures[]): string;
}

/** The section of one workload: its description, and a row for each contestant. */
export function sectionOf(result: Result, { goals, nameOf, rounds, at }: ReportOptions): string {
  const { work, rows, excluded } = result;
  const { name, about, columns, base } = work;
  const once = 'find' in work;
  const [first] = columns;
  const others = base === undefined ? undefined : rows.get(base);
  const wanted = goals.filter((goal) => goal.work === name);
  const tableColumns: TableColumn[] = [
    { head: '', isText: true, cell: (id) => nameOf(id) },
    ...columns.map((column) => ({
      head: column.name,
      cell: (_: string, own: readonly Figures[]) => cell(own, column),
    })),
  ];
  if (base !== undefined && others && first) {
    tableColumns.push({ head: `× ${nameOf(base)}`, cell: (_, own) => ratioOf(own, others, first).toFixed(2) });
  }
  if (first && !once) tableColumns.push({ head: 'spread, %', cell: (_, own) => spread(own, first).toFixed(0) });
  if (wanted.length > 0) {
    const judged = (id: string): string[] =>
      wanted.filter(({ of }) => of === id).map((goal) => judge(goal, result, nameOf));
    tableColumns.push({ head: 'goal', isText: true, cell: (id) => judged(id).join('; ') });
  }
  const table = [
    tableColumns.map(({ head }) => head),
    tableColumns.map(({ isText }) => (isText ? '---' : '---:')),
    ...[...rows].map(([id, figures]) => tableColumns.map((column) => column.cell(id, figures))),
  ].map((cells) => `| ${cells.join(' | ')} |`);
  const exclusions = [...excluded].map(
    ([id, why]) => `Excluded: ${nameOf(id)} (${why.replaceAll('|', '/').slice(0, 300)}).`,
  );
  const measured = `${once ? 'Measured once' : `Medians of ${rounds} rounds`}, at ${at}.`;
  return [`### ${name}`, about, table.join('\n'), ...exclusions, measured].join('\n\n');
}

/** A dash where a contestant has no such figure. */
function cell(figures: readonly Figures[], { name, digits }: Column): string {
  const value = median(figures.map((one) => one[name] ?? Number.NaN));
  if (!Number.isFinite(value)) return '–';
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const ratioOf = (own: readonly Figures[], base: readonly Figures[], { name }: Column): number =>
  median(own.map((one, round) => (one[name] ?? Number.NaN) / (base[round]?.[name] ?? Number.NaN)));

/** The range of the rounds, in percent of the median. A smaller difference between contestants means nothing. */
function spread(figures: readonly Figures[], { name }: Column): number {
  const values = figures.map((one) => one[name] ?? Number.NaN);
  return (100 * (Math.max(...values) - Math.min(...values))) / median(values);
}

/** Replaces the sections of the same names, in the given order. The head goes before them. */
export function write(
  path: string,
  sections: ReadonlyMap<string, string>,
  order: readonly string[],
  head: string,
): void {
  const text = existsSync(path) ? readFileSync(path, 'utf8') : empty;
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${path}: there is no "${begin}" with "${end}" after it`);
  const existing = text.slice(from + begin.length, to).split(/^(?=### )/m);
  const all = new Map(existing.slice(1).map((section) => [/^### (.*)/.exec(section)?.[1] ?? '', section.trim()]));
  for (const [name, section] of sections) all.set(name, section);
  const sorted = order.flatMap((name) => all.get(name) ?? []);
  const whole = [text.slice(0, from) + begin, head, ...sorted, text.slice(to)].join('\n\n');
  // Aligns tables as in all Markdown files here.
  const formatted = execFileSync('node_modules/.bin/biome', ['format', '--stdin-file-path=RESULTS.md'], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    input: whole,
  });
  writeFileSync(path, formatted);
}
