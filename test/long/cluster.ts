/**
 * Several nodes with one store: `tsx test/long/cluster.ts [redis] [postgres] [sqlite] [options]`, after a build
 *
 * Nodes are killed, paused, stopped and started again while customers make runs, read them, answer them and cancel
 * them through a load balancer, each request at whatever node. In the end each run has to be what its readers saw, on
 * every node. Prints what it measured, and what is wrong; then it exits with 1.
 *
 *   --runs 1000         how many runs are made
 *   --at-once 40        by how many customers at once
 *   --nodes 3           on how many nodes
 *   --lease 2000        milliseconds after which a silent node's runs are another's; 0 for the nodes' default
 *   --seed N            of what is done when; the same one makes the same decisions, if not the same moments
 *   --restart-store     the nodes stay up; a server of the test's own is their store, and that is restarted
 *
 * `sqlite` is one node with a file: what there is to see where nothing is shared, and a check of this test itself.
 */
import { parseArgs } from 'node:util';
import { postgresPlace, redisPlace, startPostgres, startRedis } from '../support/servers.ts';
import { figures } from './cluster/figures.ts';
import { type Plan, play } from './cluster/play.ts';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '1000' },
    'at-once': { type: 'string', default: '40' },
    nodes: { type: 'string', default: '3' },
    lease: { type: 'string', default: '2000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    'restart-store': { type: 'boolean', default: false },
  },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** What is different from store to store, and how to take it away; undefined where there is no server for it. */
interface Ground {
  readonly plan: Pick<Plan, 'store' | 'nodes' | 'lease' | 'restarts'>;
  remove(): Promise<void>;
}

const lease = Number(options.lease);
const shared = { nodes: Number(options.nodes), ...(lease > 0 && { lease }) };

const grounds: Record<string, () => Promise<Ground | undefined>> = {
  redis: () => ground(redisPlace, startRedis),
  postgres: () => ground(postgresPlace, startPostgres),
  sqlite: async () => ({ plan: { store: 'sqlite:cluster.db', nodes: 1 }, remove: async () => {} }),
};

async function ground(shares: typeof redisPlace, owns: typeof startRedis): Promise<Ground | undefined> {
  if (!options['restart-store']) {
    const place = await shares();
    return place && { plan: { ...shared, store: place.url }, remove: () => place.remove() };
  }
  const server = await owns({ durable: true });
  const restarts = server && { server, times: 5 };
  return server && { plan: { ...shared, store: server.url, restarts }, remove: () => server.stop() };
}

async function test(name: string): Promise<boolean> {
  const there = await grounds[name]?.();
  if (there === undefined) throw new Error(`there is no ${name} to test with`);
  const seed = Number(options.seed);
  const runs = Number(options.runs);
  say(`cluster: ${name}, ${there.plan.nodes} nodes, ${runs} runs, seed ${seed}`);
  try {
    const played = await play({ ...there.plan, runs, atOnce: Number(options['at-once']), seed, report: say });
    for (const line of figures(played)) say(line);
    const { faults } = played.ledger;
    say(faults.count === 0 ? `${name}: nothing was lost, doubled or changed.` : `${name}: WRONG, with seed ${seed}:`);
    for (const line of faults.lines()) say(line);
    return faults.count === 0;
  } finally {
    await there.remove();
  }
}

for (const name of positionals.length > 0 ? positionals : ['redis', 'postgres']) {
  if (!(await test(name))) process.exitCode = 1;
}
