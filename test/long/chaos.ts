/**
 * One server with an SQLite file that is killed at random while 32 clients use it: `tsx test/long/chaos.ts [rounds]
 * [seed]`, after a build. Prints the measurements and the faults; exits with 1 if there are faults.
 */
import { soakChaos } from './soak/chaos.ts';
import { chaosFigures } from './soak/figures.ts';

const [rounds = 200, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number);
const print = (line: string): void => void process.stdout.write(`${line}\n`);

print(`chaos: ${rounds} rounds with seed ${seed}`);
const result = await soakChaos({ rounds, seed, report: print });
for (const line of chaosFigures(result)) print(line);
const { faults } = result.ledger;
print(faults.count === 0 ? 'No event was lost, duplicated or changed.' : `FAULTS with seed ${seed}:`);
for (const line of faults.lines()) print(line);
if (faults.count > 0) process.exitCode = 1;
