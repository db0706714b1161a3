/**
 * A server and a receiver of its webhooks, either of which is killed again and again: `tsx test/long/webhooks.ts [kills]
 * [seed]`, after a build. Prints the figures and the faults; exits with 1 if there are faults.
 */
import { soakWebhooks } from './soak/webhooks.ts';

const [kills = 100, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number);
const print = (line: string): void => void process.stdout.write(`${line}\n`);

print(`webhooks: ${kills} kills with seed ${seed}`);
const { faults, runs, arrived, repeated, replayed } = await soakWebhooks({ kills, seed, report: print });
print(
  `${runs} runs, ${arrived} webhooks, ${repeated} of them repeated; ${replayed} given up after ten attempts and replayed`,
);
print(faults.count === 0 ? 'Each webhook arrived at least once, signed and in order.' : `FAULTS with seed ${seed}:`);
for (const line of faults.lines()) print(line);
if (faults.count > 0) process.exitCode = 1;
