import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { flaws } from '../simulate/flaws.ts';
import { type Mutation, mutate, mutations } from '../simulate/mutations.ts';
import { explain, planOf, type Report, shrink, simulate } from '../simulate/simulate.ts';
import type { Flaws } from '../simulate/world.ts';

/*
 * tsx test/long/simulate.ts [count]           number of seeds, 10,000 by default
 *   --from N                                  first seed
 *   --seed N                                  only this seed: prints its plan, reduced as far as possible, and the result
 *   --whole                                   do not reduce the plan
 *   --trace                                   print every event of that seed
 *   --until NAME                              stop when an invariant of this name is broken; may be repeated
 *   --brief                                   print only the broken invariants and their seeds
 *   --mutations                               inject defects, and check that each is detected within 10,000 seeds
 *   --only TEXT                               only the defects with this text in their names
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    whole: { type: 'boolean', default: false },
    until: { type: 'string', multiple: true, default: [] },
    brief: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    mutations: { type: 'boolean', default: false },
  },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);

interface Found {
  readonly broken: Map<string, number[]>;
  readonly last: Report | undefined;
  runs: number;
  steps: number;
}

async function explore(first: number, count: number, until: readonly string[], flaws: Flaws = {}): Promise<Found> {
  const broken = new Map<string, number[]>();
  const found = { broken, last: undefined as Report | undefined, runs: 0, steps: 0 };
  for (let seed = first; seed < first + count; seed += 1) {
    const report = await simulate(planOf(seed), flaws);
    found.runs += report.runs;
    found.steps += report.steps;
    const { violation } = report;
    if (violation === undefined) continue;
    broken.set(violation.invariant, [...(broken.get(violation.invariant) ?? []), seed]);
    found.last = report;
    if (until.includes(violation.invariant)) break;
  }
  return found;
}

/** The first seed that breaks one of these invariants with the defect, and none without it. */
async function firstSeed(
  count: number,
  next: (from: number) => Promise<number | undefined>,
): Promise<number | undefined> {
  for (let from = 1; from <= count; ) {
    const seed = await next(from);
    if (seed === undefined || (await simulate(planOf(seed))).violation === undefined) return seed;
    from = seed + 1;
  }
  return undefined;
}

/** Whether each injected defect is detected within the number of seeds. */
async function noticeAll(count: number): Promise<boolean> {
  let all = true;
  const notice = async (name: string, next: (from: number) => Promise<number | undefined>): Promise<void> => {
    if (!name.includes(values.only)) return;
    const seed = await firstSeed(count, next);
    all &&= seed !== undefined;
    say(`${seed === undefined ? 'NOT NOTICED' : `noticed by seed ${seed}`.padEnd(22)}  ${name}`);
  };
  for (const { name, flaws: flaw, noticed } of flaws) {
    await notice(name, async (from) => {
      const { broken } = await explore(from, count - from + 1, noticed, flaw);
      return noticed.flatMap((invariant) => broken.get(invariant) ?? [])[0];
    });
  }
  for (const mutation of mutations)
    await notice(mutation.name, async (from) => exploreMutated(mutation, from, count - from + 1));
  return all;
}

function exploreMutated(mutation: Mutation, from: number, count: number): number | undefined {
  const { noticed } = mutation;
  const script = ['--import', 'tsx', 'test/long/simulate.ts', String(count), '--from', String(from), '--brief'];
  const until = noticed.flatMap((name) => ['--until', name]);
  const { stdout, stderr } = spawnSync(process.execPath, [...script, ...until], {
    cwd: mutate(mutation),
    encoding: 'utf8',
    maxBuffer: 1e9,
  });
  if (!/^\d+ seeds from/.test(stdout)) throw new Error(`${mutation.name}: ${stderr}`);
  const lines = stdout.split('\n').filter((line) => noticed.some((name) => line.startsWith(`  ${name}: `)));
  const seed = /seeds: (\d+)/.exec(lines[0] ?? '')?.[1];
  return seed === undefined ? undefined : Number(seed);
}

if (values.mutations) {
  if (!(await noticeAll(Number(positionals[0] ?? 10_000)))) process.exitCode = 1;
} else if (values.seed !== undefined) {
  const report = await simulate(planOf(Number(values.seed)), {}, values.trace ? say : undefined);
  if (report.violation === undefined) {
    say(
      `seed ${values.seed}: ${report.runs} runs, ${report.steps} steps, ${report.seconds} virtual s; nothing is broken`,
    );
  } else {
    say(explain(values.whole || values.trace ? report : await shrink(report)));
    process.exitCode = 1;
  }
} else {
  const [first, count] = [Number(values.from), Number(positionals[0] ?? 10_000)];
  const started = performance.now();
  const { broken, last, runs, steps } = await explore(first, count, values.until);
  say(
    `${count} seeds from ${first}: ${runs} runs, ${steps} steps, ${((performance.now() - started) / 1000).toFixed(1)} s`,
  );
  for (const [invariant, seeds] of broken)
    say(`  ${invariant}: broken by ${seeds.length}, by seeds: ${seeds.slice(0, 8).join(' ')}`);
  if (last !== undefined) {
    if (!values.brief) say(`\n${explain(await shrink(last))}`);
    process.exitCode = 1;
  }
}
