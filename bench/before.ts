/** Compares Rivulet with another checkout of itself, such as the commit before a change. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry } from './contestant.ts';
import { entries } from './entries.ts';
import { type Figures, isRivulet, median, type Result } from './work.ts';

const suffix = '-before';

/**
 * Each Rivulet of this project, followed by that of the other checkout. They share no file, and no data of a database: the
 * layouts may differ, and one would execute the runs of the other.
 */
export function twinsOf(checkout: string, folder: string): Entry[] {
  const folderOfOther = join(folder, 'before');
  mkdirSync(folderOfOther);
  const others = entries(folderOfOther);
  return entries(folder).flatMap((entry, index) => {
    const other = others[index];
    if (!isRivulet(entry) || other === undefined) return [];
    return [entry, { ...other, id: entry.id + suffix, args: other.args?.map(ownData), checkout }];
  });
}

/** The URL of a database, for data apart from that of the other twin. */
function ownData(arg: string): string {
  const parameter = { redis: 'prefix', postgres: 'schema' }[/^(redis|postgres)/.exec(arg)?.[1] ?? ''];
  return parameter === undefined ? arg : `${arg}${arg.includes('?') ? '&' : '?'}${parameter}=bench_before`;
}

export interface BeforeOptions {
  readonly nameOf: (id: string) => string;
  readonly rounds: number;
}

/**
 * A row for each figure of each contestant, with how much better it is than before: the median of the ratios of the
 * rounds, above 1 for more a second and for less time, memory or CPU time.
 */
export function beforeSection({ work, rows, excluded }: Result, { nameOf, rounds }: BeforeOptions): string {
  const table = [...rows].flatMap(([id, own]) => {
    const others = rows.get(id + suffix);
    if (others === undefined) return [];
    return work.columns.map(({ name, digits }) => {
      const [now, then] = [figuresOf(own, name), figuresOf(others, name)];
      const ratios = now.map((one, round) => betterBy(name, one, then[round] ?? Number.NaN));
      const cells = [median(then).toFixed(digits), median(now).toFixed(digits), median(ratios).toFixed(2)];
      const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
      return `| ${[nameOf(id), name, ...cells, range].join(' | ')} |`;
    });
  });
  const exclusions = [...excluded].map(([id, why]) => `Excluded: ${id} (${why.slice(0, 300)}).`);
  const head = '| | figure | before | now | × before | rounds |\n| --- | --- | ---: | ---: | ---: | --- |';
  return [`### ${work.name}`, `${head}\n${table.join('\n')}`, ...exclusions, `Medians of ${rounds} rounds.`].join(
    '\n\n',
  );
}

const figuresOf = (figures: readonly Figures[], name: string): number[] =>
  figures.map((one) => one[name] ?? Number.NaN);

const betterBy = (name: string, now: number, then: number): number => (name.endsWith('/s') ? now / then : then / now);
