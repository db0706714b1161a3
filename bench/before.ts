/** Compares Rivulet with another checkout of itself, such as the commit before a change. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry } from './contestant.ts';
import { entries } from './entries.ts';
import { type Column, type Figures, isRivulet, median, type Result, type Work } from './work.ts';

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
  /** Milliseconds. */
  readonly turn: number;
}

/**
 * A row for each figure of each contestant, with how much better it is than before: above 1 for more a second, and for
 * less time, memory or CPU time. Each of `pairs` is the result of two processes, because two processes of one commit differ
 * more than their rounds do; works that start new ones in each round need one pair. The ratio is the median of those of
 * the pairs, each of which is that of the sums over its rounds: a round of one process may cost half as much as the next,
 * and the median of such ratios says less.
 */
export function beforeSection(work: Work, pairs: readonly Result[], { nameOf, rounds, turn }: BeforeOptions): string {
  const ids = new Set(pairs.flatMap(({ rows }) => [...rows.keys()]));
  const table = [...ids].flatMap((id) => {
    const twins = pairs.flatMap(({ rows }) => {
      const [now, before] = [rows.get(id), rows.get(id + suffix)];
      return now === undefined || before === undefined ? [] : [{ now, before }];
    });
    if (twins.length === 0) return [];
    return work.columns.filter(({ ofLoad }) => !ofLoad).map((column) => `| ${nameOf(id)} | ${cells(column, twins)} |`);
  });
  const exclusions = pairs.flatMap(({ excluded }, index) =>
    [...excluded].map(([id, why]) => `Excluded from pair ${index + 1}: ${id} (${why.slice(0, 300)}).`),
  );
  const head = '| | figure | before | now | × before | pairs |\n| --- | --- | ---: | ---: | ---: | --- |';
  const method = `Pairs of processes: ${pairs.length}, each with ${rounds} rounds and turns of ${turn} ms.`;
  return [`### ${work.name}`, `${head}\n${table.join('\n')}`, ...exclusions, method].join('\n\n');
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0);

/** The figures of two processes, round by round. */
interface Twins {
  readonly now: readonly Figures[];
  readonly before: readonly Figures[];
}

function cells({ name, digits }: Column, pairs: readonly Twins[]): string {
  const valuesOf = (figures: readonly Figures[]): number[] => figures.map((one) => one[name] ?? Number.NaN);
  const ratio = (one: number, other: number): number => (name.endsWith('/s') ? one / other : other / one);
  const ratios = pairs.flatMap(({ now, before }) => {
    const ofPair = ratio(sumOf(valuesOf(now)), sumOf(valuesOf(before)));
    // Two figures of zero have no ratio.
    return Number.isFinite(ofPair) ? [ofPair] : [];
  });
  const [before, now] = [pairs.flatMap((pair) => valuesOf(pair.before)), pairs.flatMap((pair) => valuesOf(pair.now))];
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  return [name, median(before).toFixed(digits), median(now).toFixed(digits), median(ratios).toFixed(2), range].join(
    ' | ',
  );
}
