/**
 * Compares Rivulet with other servers: `npm run bench`, or parts of it:
 * `npm run bench -- --only streams --work "400 streams" --rounds 5 --contestants rivulet,bare`.
 * Prints progress to stderr and tables to stdout, and writes each finished table into RESULTS.md. With `--contestants`,
 * where rows are missing, and with `--dry` it only prints. With `--before ../other`, it compares Rivulet with itself: each
 * of its contestants takes turns with that of another checkout, which is built, and the tables have the ratios. `--pairs`
 * is how often both start anew for that; default 5. `--warm-up` is how long each contestant works before it is measured, in
 * milliseconds; default 2000. Streams at a pace warm up with short, fast ones. `--turn`, in milliseconds and 1000 by default, is
 * about how long streams at full speed, runs and first tokens are measured in a round. With short turns in many rounds, all
 * contestants meet the same of what else the machine does.
 */
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { beforeSection, twinsOf } from './before.ts';
import { temporaryFolder } from './cleanup.ts';
import { build } from './contestant.ts';
import { entries } from './entries.ts';
import { goals } from './goals.ts';
import { commit, machine } from './machine.ts';
import { sectionOf, write } from './report.ts';
import { compare } from './rounds.ts';
import { type Result, usualTurn, type Work } from './work.ts';
import { works } from './works.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    work: { type: 'string' },
    contestants: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    before: { type: 'string' },
    pairs: { type: 'string', default: '5' },
    'warm-up': { type: 'string', default: '2000' },
    turn: { type: 'string', default: String(usualTurn) },
    out: { type: 'string', default: relative('.', fileURLToPath(new URL('RESULTS.md', import.meta.url))) },
    dry: { type: 'boolean', default: false },
  },
});

/** The value of an option that is a whole number above zero. */
function numberOf(option: 'rounds' | 'pairs' | 'warm-up' | 'turn'): number {
  const value = Number(values[option]);
  if (!Number.isInteger(value) || value < 1) {
    throw new Error(`--${option}: expected a whole number above zero; got ${values[option]}`);
  }
  return value;
}

const isSelected = (list: string | undefined, word: string): boolean =>
  list === undefined || list.split(',').some((one) => word.toLowerCase().includes(one.trim().toLowerCase()));

const folder = temporaryFolder();
const before = values.before === undefined ? undefined : resolve(values.before);
const contestants = before === undefined ? entries(folder) : twinsOf(before, folder);
const chosen = contestants.filter(({ id }) => isSelected(values.contestants, id));
const wanted = works.filter(
  (work) =>
    isSelected(values.only, work.group) &&
    work.name.includes(values.work ?? '') &&
    // Works without contestants have nothing to compare.
    (before === undefined || 'measure' in work),
);
if (chosen.length === 0 || wanted.length === 0) {
  throw new Error(
    `nothing to do; groups: ${[...new Set(works.map(({ group }) => group))].join(', ')}; contestants: ${contestants.map(({ id }) => id).join(', ')}`,
  );
}
const rounds = numberOf('rounds');
const turn = numberOf('turn');
const warmUp = numberOf('warm-up');
const mostPairs = numberOf('pairs');
build();
if (before !== undefined) build(before);
const progress = (line: string): void => void process.stderr.write(`${line}\n`);

async function resultOf(work: Work, order = chosen): Promise<Result> {
  if ('measure' in work) {
    return compare(work, order, {
      rounds,
      pinned: true,
      warmUp,
      turn,
      progress,
    });
  }
  const found = await work.find(folder);
  return { work, rows: new Map([...found].map(([id, figures]) => [id, [figures]])), excluded: new Map() };
}

const options = {
  goals,
  nameOf: (id: string) => contestants.find((one) => one.id === id)?.name ?? id,
  rounds,
  turn,
  at: `${commit()}, ${new Date().toISOString().slice(0, 10)}`,
};
for (const work of wanted) {
  if (before !== undefined) {
    const pairs: Result[] = [];
    const count = 'fresh' in work && work.fresh ? 1 : mostPairs;
    // Neither twin is always the first to start and to be measured.
    while (pairs.length < count)
      pairs.push(await resultOf(work, pairs.length % 2 === 0 ? chosen : chosen.toReversed()));
    console.log(`\n${beforeSection(work, pairs, options)}`);
    continue;
  }
  const result = await resultOf(work);
  const section = sectionOf(result, options);
  console.log(`\n${section}`);
  if (!values.dry && values.contestants === undefined) {
    const order = works.map(({ name }) => name);
    write(values.out, new Map([[work.name, section]]), order, machine());
  }
}
process.exit();
