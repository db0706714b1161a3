/** Compares Rivulet with another checkout of itself, such as the commit before a change. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry } from './contestant.ts';
import { entries } from './entries.ts';
import { type Column, type Figures, isRivulet, median, type Result } from './work.ts';

const suffix = '-before';

/**
 * Each Rivulet of this project, followed by that of the other checkout. They share no file, and no data of a database: the
 * layouts may differ, and one would execute the runs of the other.
 */
export function twinsOf(checkout: string, folder: string): Entry[] {
  if (!existsSync(join(checkout, 'dist/index.js'))) {
    throw new Error(
      `--before: expected the folder of a checkout that is built; got ${checkout}. Run npm ci and npm run build there`,
    );
  }
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
 * rounds, above 1 for more a second, and for less time, memory or CPU time.
 */
export function beforeSection({ work, rows, excluded }: Result, { nameOf, rounds }: BeforeOptions): string {
  const table = [...rows].flatMap(([id, now]) => {
    const before = rows.get(id + suffix);
    if (before === undefined) return [];
    return work.columns
      .filter(({ ofLoad }) => !ofLoad)
      .map((column) => `| ${nameOf(id)} | ${cells(column, now, before)} |`);
  });
  const exclusions = [...excluded].map(([id, why]) => `Excluded: ${id} (${why.slice(0, 300)}).`);
  const head = '| | figure | before | now | × before | rounds |\n| --- | --- | ---: | ---: | ---: | --- |';
  const parts = [`### ${work.name}`, `${head}\n${table.join('\n')}`, ...exclusions, `Medians of ${rounds} rounds.`];
  return parts.join('\n\n');
}

function cells({ name, digits }: Column, now: readonly Figures[], before: readonly Figures[]): string {
  const valuesOf = (figures: readonly Figures[]): number[] => figures.map((one) => one[name] ?? Number.NaN);
  const [own, others] = [valuesOf(now), valuesOf(before)];
  const ratio = (one: number, other: number): number => (name.endsWith('/s') ? one / other : other / one);
  // Two figures of zero have no ratio.
  const ratios = own.map((one, round) => ratio(one, others[round] ?? Number.NaN)).filter(Number.isFinite);
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  return [name, median(others).toFixed(digits), median(own).toFixed(digits), median(ratios).toFixed(2), range].join(
    ' | ',
  );
}
