import { explain, planOf, shrink, simulate } from '../simulate/simulate.ts';

// tsx test/long/simulate.ts [count] [--from N] [--seed N] [--whole]
const args = process.argv.slice(2);
const option = (name: string): number | undefined => {
  const at = args.indexOf(name);
  return at < 0 ? undefined : Number(args[at + 1]);
};
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const started = performance.now();
const seed = option('--seed');
const first = seed ?? option('--from') ?? 1;
const count =
  seed === undefined
    ? Number(args.find((arg, index) => /^\d+$/.test(arg) && !args[index - 1]?.startsWith('--')) ?? 10_000)
    : 1;

const broken = new Map<string, number[]>();
let steps = 0;
let runs = 0;
for (let next = first; next < first + count; next += 1) {
  const report = await simulate(planOf(next));
  steps += report.steps;
  runs += report.runs;
  if (report.violation === undefined) continue;
  const { invariant } = report.violation;
  const seeds = broken.get(invariant) ?? [];
  broken.set(invariant, [...seeds, next]);
  if (seed !== undefined) say(explain(args.includes('--whole') ? report : await shrink(report)));
  else if (seeds.length === 0) say(`seed ${next}: ${invariant}: ${report.violation.detail}`);
}
const seconds = (performance.now() - started) / 1000;
say(`${count} seeds, ${runs} runs, ${steps} steps in ${seconds.toFixed(1)} s`);
for (const [invariant, seeds] of broken) say(`  ${invariant}: ${seeds.length} seeds, ${seeds.slice(0, 8).join(' ')}`);
if (broken.size > 0) process.exitCode = 1;
