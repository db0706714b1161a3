/** Results as tables, kept in a Markdown file whose other parts stay as they are. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Goal, judge } from './goals.ts';
import { type Column, type Figures, median, type Result } from './work.ts';

const begin = '<!-- results: written by `npm run bench` -->';
const end = '<!-- end of results -->';
const empty = `# Results\n\n## Findings\n\n${begin}\n\n${end}\n`;

export interface Told {
  readonly goals: readonly Goal[];
  readonly nameOf: (id: string) => string;
  readonly rounds: number;
  /** The commit that was measured, and the date. */
  readonly at: string;
}

interface Shown {
  readonly head: string;
  readonly words?: boolean;
  cell(id: string, figures: readonly Figures[]): string;
}

/** The section of one work: what was done, and a row for each contestant. */
export function sectionOf(result: Result, { goals, nameOf, rounds, at }: Told): string {
  const { work, rows, out } = result;
  const { name, about, columns, base } = work;
  const found = 'find' in work;
  const [first] = columns;
  const others = base === undefined ? undefined : rows.get(base);
  const wanted = goals.filter((goal) => goal.work === name);
  const shown: Shown[] = [
    { head: '', words: true, cell: (id) => nameOf(id) },
    ...columns.map((column) => ({
      head: column.name,
      cell: (_: string, own: readonly Figures[]) => cell(own, column),
    })),
  ];
  if (base !== undefined && others && first) {
    shown.push({ head: `× ${nameOf(base)}`, cell: (_, own) => ratioOf(own, others, first).toFixed(2) });
  }
  if (first && !found) shown.push({ head: 'spread, %', cell: (_, own) => spread(own, first).toFixed(0) });
  if (wanted.length > 0) {
    const judged = (id: string): string[] =>
      wanted.filter(({ of }) => of === id).map((goal) => judge(goal, result, nameOf));
    shown.push({ head: 'goal', words: true, cell: (id) => judged(id).join('; ') });
  }
  const table = [
    shown.map(({ head }) => head),
    shown.map(({ words }) => (words ? '---' : '---:')),
    ...[...rows].map(([id, figures]) => shown.map((one) => one.cell(id, figures))),
  ].map((cells) => `| ${cells.join(' | ')} |`);
  const left = [...out].map(([id, why]) => `Left out: ${nameOf(id)} (${why.replaceAll('|', '/').slice(0, 300)}).`);
  const measured = `${found ? 'Found out once' : `Medians of ${rounds} rounds`}, at ${at}.`;
  return [`### ${name}`, about, table.join('\n'), ...left, measured].join('\n\n');
}

const cell = (figures: readonly Figures[], { name, digits }: Column): string =>
  median(figures.map((one) => one[name] ?? Number.NaN)).toLocaleString('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });

const ratioOf = (own: readonly Figures[], base: readonly Figures[], { name }: Column): number =>
  median(own.map((one, round) => (one[name] ?? Number.NaN) / (base[round]?.[name] ?? Number.NaN)));

/** How far the rounds lie apart: what a difference has to exceed to be one. */
function spread(figures: readonly Figures[], { name }: Column): number {
  const values = figures.map((one) => one[name] ?? Number.NaN);
  return (100 * (Math.max(...values) - Math.min(...values))) / median(values);
}

/** Puts sections in the place of older ones of the same name, in the order given; the head goes before them. */
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
  const kept = text.slice(from + begin.length, to).split(/^(?=### )/m);
  const all = new Map(kept.slice(1).map((section) => [/^### (.*)/.exec(section)?.[1] ?? '', section.trim()]));
  for (const [name, section] of sections) all.set(name, section);
  const sorted = order.flatMap((name) => all.get(name) ?? []);
  const whole = [text.slice(0, from) + begin, head, ...sorted, text.slice(to)].join('\n\n');
  // Tables are aligned as all Markdown here is.
  const formatted = execFileSync('node_modules/.bin/biome', ['format', '--stdin-file-path=RESULTS.md'], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    input: whole,
  });
  writeFileSync(path, formatted);
}
