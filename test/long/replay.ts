import { keepAlive } from '../../src/testing/engine.ts';
import { checkPlan } from '../support/replay-check.ts';

// Executes random durable agents in each way in which a run may live, and interrupts them after some of their commits:
// `npm run test:replay`.
// Arguments: the number of agents, the seed of the first, and the commits of each after which it is interrupted at most. A
// fault names its seed.
const plans = Number(process.argv[2] ?? 5_000);
const first = Number(process.argv[3] ?? 1);
const cuts = Number(process.argv[4] ?? 4);
const atOnce = 32;

let next = first;
let done = 0;
let lives = 0;
let faults = 0;

async function work(): Promise<void> {
  while (next < first + plans && faults < 10) {
    const seed = next;
    next += 1;
    const { lives: lived, faults: found } = await checkPlan(seed, cuts);
    for (const fault of found) console.error(fault);
    faults += found.length;
    done += 1;
    lives += lived;
    if (done % 250 === 0) console.log(`${done} of ${plans} plans, ${lives} lives, ${faults} faults`);
  }
}

await keepAlive(() => Promise.all(Array.from({ length: atOnce }, work)));
console.log(`${done} plans, ${lives} lives, ${faults} faults`);
process.exitCode = faults === 0 ? 0 : 1;
