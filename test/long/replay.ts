import { checkPlan } from '../support/replay-check.ts';

// Interrupts random durable agents after each of their commits and re-enters them: `npm run test:replay`.
// Arguments: the number of agents and the seed of the first; a fault names its seed.
const plans = Number(process.argv[2] ?? 5_000);
const first = Number(process.argv[3] ?? 1);
const atOnce = 32;

let next = first;
let done = 0;
let lives = 0;
const faults: string[] = [];

async function work(): Promise<void> {
  while (next < first + plans && faults.length < 10) {
    const seed = next;
    next += 1;
    const { cuts, faults: found } = await checkPlan(seed);
    faults.push(...found);
    done += 1;
    lives += cuts;
    if (done % 250 === 0) console.log(`${done} of ${plans} plans, ${lives} lives, ${faults.length} faults`);
  }
}

await Promise.all(Array.from({ length: atOnce }, work));
for (const fault of faults) console.error(fault);
console.log(`${done} plans, ${lives} lives, ${faults.length} faults`);
process.exitCode = faults.length === 0 ? 0 : 1;
