import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { flaws } from '../simulate/flaws.ts';
import { mutate, mutations } from '../simulate/mutations.ts';
import { explain, planOf, type Report, shrink, simulate } from '../simulate/simulate.ts';
import type { Flaws } from '../simulate/world.ts';

/*
 * tsx test/long/simulate.ts [count]           so many seeds, 10,000 by default
 *   --from N                                  beginning with this one
 *   --seed N                                  this one alone: its plan, made as small as it gets, and what happened
 *   --whole                                   the plan as it was drawn
 *   --trace                                   every event of that seed, as it happens
 *   --until NAME                              stop where an invariant of this name is broken; may be repeated
 *   --mutations                               put defects in, and see that each is noticed
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    whole: { type: 'boolean', default: false },
    until: { type: 'string', multiple: true, default: [] },
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

/** Whether each defect that is put in is noticed within so many seeds. */
async function noticeAll(count: number): Promise<boolean> {
  let all = true;
  const tell = (name: string, seed: number | undefined): void => {
    all &&= seed !== undefined;
    say(`${seed === undefined ? 'NOT NOTICED' : `noticed by seed ${seed}`.padEnd(22)}  ${name}`);
  };
  for (const { name, flaws: flaw, noticed } of flaws) {
    const { broken } = await explore(1, count, noticed, flaw);
    tell(name, noticed.flatMap((invariant) => broken.get(invariant) ?? [])[0]);
  }
  for (const mutation of mutations) {
    const until = mutation.noticed.flatMap((name) => ['--until', name]);
    const script = ['--import', 'tsx', 'test/long/simulate.ts', String(count), ...until];
    const { stdout } = spawnSync(process.execPath, script, { cwd: mutate(mutation), encoding: 'utf8' });
    const lines = mutation.noticed.flatMap((name) => stdout.split('\n').filter((line) => line.includes(`  ${name}: `)));
    tell(mutation.name, lines.map((line) => Number(/seeds?: .*?(\d+)$/.exec(line)?.[1]))[0]);
  }
  return all;
}

if (values.mutations) {
  if (!(await noticeAll(Number(positionals[0] ?? 1_000)))) process.exitCode = 1;
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
    say(`\n${explain(await shrink(last))}`);
    process.exitCode = 1;
  }
}
