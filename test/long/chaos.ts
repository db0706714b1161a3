import { Violation } from './chaos/ledger.ts';
import { play } from './chaos/play.ts';

// tsx test/long/chaos.ts [rounds] [seed], after `npm run build`: what is killed is the build.
const [rounds = 200, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

say(`chaos: ${rounds} rounds with seed ${seed}`);
try {
  const { runs, recovery, ...figures } = await play({ rounds, seed, report: say });
  for (const [name, value] of Object.entries(figures)) say(`${name.padEnd(14)}${value}`);
  say(`recovery      p50 ${recovery.p50} ms, max ${recovery.max} ms, from the start of the process`);
  for (const [name, value] of Object.entries(runs)) say(`  ${name.padEnd(30)}${value}`);
  say('Nothing was lost, doubled or changed.');
} catch (error) {
  const what = error instanceof Violation ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`chaos: seed ${seed}: ${what}\n`);
  process.exitCode = 1;
}
