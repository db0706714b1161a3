/** Compares Rivulet with another checkout of itself, such as the commit before a change. */

import { temporaryFolder } from './cleanup.ts';
import type { Entry } from './contestant.ts';
import { type Figures, isRivulet, median, type Result } from './work.ts';

const suffix = '-before';

/** The contestants of this project, each followed by that of the other checkout, with files of its own. */
export function twinsOf(checkout: string, entries: (folder: string) => Entry[]): Entry[] {
  const others = entries(temporaryFolder()).map((entry) => ({ ...entry, id: entry.id + suffix, checkout }));
  return entries(temporaryFolder()).flatMap((entry, index) => {
    const other = others[index];
    return isRivulet(entry) && other !== undefined ? [entry, other] : [];
  });
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
