/**
 * Rivulet beside other servers: `npm run bench`, or parts of it:
 * `npm run bench -- --only streams --work "400 streams" --rounds 5 --contestants rivulet,bare`.
 * Prints its progress on stderr and the tables on stdout, and puts each table into RESULTS.md when it is done;
 * but not with `--contestants`, where rows are missing, nor with `--dry`.
 */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from './contestant.ts';
import { entries } from './entries.ts';
import { goals } from './goals.ts';
import { commit, machine } from './machine.ts';
import { temporaryFolder } from './owned.ts';
import { sectionOf, write } from './report.ts';
import { compare } from './rounds.ts';
import type { Result, Work } from './work.ts';
import { works } from './works.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    work: { type: 'string' },
    contestants: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    out: { type: 'string', default: relative('.', fileURLToPath(new URL('RESULTS.md', import.meta.url))) },
    dry: { type: 'boolean', default: false },
  },
});
const among = (list: string | undefined, word: string): boolean =>
  list === undefined || list.split(',').some((one) => word.toLowerCase().includes(one.trim().toLowerCase()));

const folder = temporaryFolder();
const everybody = entries(folder);
const chosen = everybody.filter(({ id }) => among(values.contestants, id));
const wanted = works.filter(({ name, group }) => among(values.only, group) && name.includes(values.work ?? ''));
if (chosen.length === 0 || wanted.length === 0) {
  throw new Error(
    `nothing to do; groups: ${[...new Set(works.map(({ group }) => group))].join(', ')}; contestants: ${everybody.map(({ id }) => id).join(', ')}`,
  );
}
build();
const progress = (line: string): void => void process.stderr.write(`${line}\n`);
const rounds = Number(values.rounds);

async function resultOf(work: Work): Promise<Result> {
  if ('measure' in work) return compare(work, chosen, { rounds, pinned: true, warmUp: 2_000, progress });
  const found = await work.find(folder);
  return { work, rows: new Map([...found].map(([id, figures]) => [id, [figures]])), out: new Map() };
}

const told = {
  goals,
  nameOf: (id: string) => everybody.find((one) => one.id === id)?.name ?? id,
  rounds,
  at: `${commit()}, ${new Date().toISOString().slice(0, 10)}`,
};
for (const work of wanted) {
  const result = await resultOf(work);
  const section = sectionOf(result, told);
  console.log(`\n${section}`);
  if (!values.dry && values.contestants === undefined) {
    const order = works.map(({ name }) => name);
    write(values.out, new Map([[work.name, section]]), order, machine());
  }
}
process.exit();
