/**
 * What agents did outside: `tsx test/long/effects.ts [runs] [options]`, after a build
 *
 * Agents lock, book, pay and mail in steps, while their nodes are killed, paused and stopped, and while clients reply and
 * cancel through random nodes. A ledger outside of the nodes has each effect. At the end it is checked for repeated,
 * missing and needless effects. Prints the figures and each broken invariant; exits with 1 if there is one.
 *
 *   --store NAME        sqlite (one node), redis or postgres (two nodes, sometimes with a node that only serves requests)
 *   --seed N            seed of all random decisions; their times still differ
 *   --at-once 40        the number of concurrent clients
 */
import { parseArgs } from 'node:util';
import { type Place, postgresPlace, redisPlace } from '../support/servers.ts';
import { effectFigures } from './effects/figures.ts';
import { soakEffects } from './effects/soak-effects.ts';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    store: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    'at-once': { type: 'string', default: '40' },
  },
});
const [runs = 500] = positionals.map(Number);
if (!(runs > 0)) throw new Error(`expected a number of runs, got ${positionals[0]}; name a store with --store`);
const seed = Number(options.seed);
const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Each is undefined if its server is not installed. */
const places: Record<string, () => Promise<Pick<Place, 'url' | 'remove'> | undefined>> = {
  sqlite: async () => ({ url: 'sqlite:effects.db', remove: async () => {} }),
  redis: redisPlace,
  postgres: postgresPlace,
};

/** Resolves to whether every invariant holds. */
async function test(name: string): Promise<boolean> {
  const place = await places[name]?.();
  if (place === undefined) throw new Error(`there is no ${name} to test with; expected ${Object.keys(places)}`);
  const nodes = name === 'sqlite' ? 1 : 2;
  const fronts = name === 'sqlite' ? 0 : seed % 2;
  print(`effects: ${name}, ${nodes} nodes and ${fronts} that only serve requests, ${runs} runs, seed ${seed}`);
  try {
    const clients = Number(options['at-once']);
    const shared = { store: place.url, nodes, fronts, runs, clients, seed };
    const result = await soakEffects({ ...shared, maxQuiet: 10_000, report: print });
    for (const line of effectFigures(result)) print(line);
    const { faults } = result;
    print(faults.count === 0 ? `${name}: every invariant holds.` : `${name}: BROKEN INVARIANTS, seed ${seed}:`);
    for (const line of faults.lines()) print(line);
    for (const [kind, count] of Object.entries(faults.counts)) print(`${name}: ${String(count).padStart(4)} × ${kind}`);
    return faults.count === 0;
  } finally {
    await place.remove();
  }
}

for (const name of options.store === undefined ? Object.keys(places) : [options.store]) {
  if (!(await test(name))) process.exitCode = 1;
}
