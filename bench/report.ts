/** Results as tables, kept in a Markdown file whose other parts stay as they are. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type Goal, judge } from './goals.ts';
import { type Column, type Figures, median, type Result } from './work.ts';

const begin = '<!-- results: written by `npm run bench` -->';
const end = '<!-- end of results -->';
const empty = `# Results\n\n## Findings\n\n${begin}\n\n${end}\n`;

export interface Told {
  readonly goals: readonly Goal[];
  readonly nameOf: (id: string) => string;
  /** A line on when and how it was measured. */
  readonly measured: string;
}

/** The section of one work: what was done, and a row for each contestant. */
export function sectionOf(result: Result, { goals, nameOf, measured }: Told): string {
  const { name, about, columns, base } = result.work;
  const ours = goals.filter((goal) => goal.work === name);
  const ratio = base !== undefined && result.rows.has(base);
  const [first] = columns;
  const head = [
    '',
    ...columns.map((column) => column.name),
    ...(ratio ? [`× ${nameOf(base)}`] : []),
    ...('find' in result.work ? [] : ['spread, %']),
    ...(ours.length > 0 ? ['goal'] : []),
  ];
  const rows = [...result.rows].map(([id, figures]) => [
    nameOf(id),
    ...columns.map((column) => cell(figures, column)),
    ...(ratio && first ? [ratioOf(figures, result.rows.get(base) ?? [], first).toFixed(2)] : []),
    ...('find' in result.work || !first ? [] : [spread(figures, first).toFixed(0)]),
    ...(ours.length > 0
      ? [
          ours
            .filter(({ of }) => of === id)
            .map((goal) => judge(goal, result, nameOf))
            .join('; '),
        ]
      : []),
  ]);
  const rule = head.map((_, index) => (index === 0 || (ours.length > 0 && index === head.length - 1) ? '---' : '---:'));
  const table = [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  const out = [...result.out].map(
    ([id, why]) => `Left out: ${nameOf(id)} (${why.replaceAll('|', '/').slice(0, 300)}).`,
  );
  return [`### ${name}`, about, table.join('\n'), ...out, measured].join('\n\n');
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
  writeFileSync(path, [text.slice(0, from) + begin, head, ...sorted, text.slice(to)].join('\n\n'));
  // Tables are aligned as all Markdown here is.
  execFileSync('npx', ['biome', 'format', '--write', path], { stdio: 'ignore' });
}
