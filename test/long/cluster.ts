/**
 * Several nodes with one store: `tsx test/long/cluster.ts [redis] [redis-cluster] [postgres] [sqlite] [options]`, after a build
 *
 * Nodes are killed, paused, stopped and restarted while clients create runs, read them, reply to them and cancel them
 * through a load balancer. At the end, the runs on every node have to be what the clients received.
 * Prints the measurements and the faults; exits with 1 if there are faults.
 *
 *   --runs 1000         the number of runs
 *   --at-once 40        the number of concurrent clients
 *   --nodes 3           the number of nodes
 *   --lease 2000        milliseconds after which another node takes over a silent node's runs; 0 for the nodes' default
 *   --seed N            seed of all random decisions; their times still differ
 *   --restart-store     restarts the store, a server of the test's own, instead of the nodes
 *
 * In a `redis-cluster`, primaries die and slots move meanwhile, all the time.
 * `sqlite` is one node with a file, to check the test itself.
 */
import { parseArgs } from 'node:util';
import { postgresPlace, redisPlace, startPostgres, startRedis, startRedisCluster } from '../support/servers.ts';
import { type ClusterPlan, soakCluster } from './soak/cluster.ts';
import { clusterFigures } from './soak/figures.ts';

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
const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** A store for the test, and the options that depend on it. */
interface Target {
  readonly plan: Pick<ClusterPlan, 'store' | 'nodes' | 'lease' | 'restarts' | 'cluster'>;
  remove(): Promise<void>;
}

const lease = Number(options.lease);
const shared = { nodes: Number(options.nodes), ...(lease > 0 && { lease }) };

/** Each is undefined if its server is not installed. */
const targets: Record<string, () => Promise<Target | undefined>> = {
  redis: () => target(redisPlace, startRedis),
  postgres: () => target(postgresPlace, startPostgres),
  'redis-cluster': async () => {
    const cluster = await startRedisCluster({ replicas: 1 });
    return cluster && { plan: { ...shared, store: cluster.url, cluster }, remove: () => cluster.stop() };
  },
  sqlite: async () => ({ plan: { store: 'sqlite:cluster.db', nodes: 1 }, remove: async () => {} }),
};

async function target(findServer: typeof redisPlace, startServer: typeof startRedis): Promise<Target | undefined> {
  if (!options['restart-store']) {
    const place = await findServer();
    return place && { plan: { ...shared, store: place.url }, remove: () => place.remove() };
  }
  const server = await startServer({ durable: true });
  const restarts = server && { server, times: 5 };
  return server && { plan: { ...shared, store: server.url, restarts }, remove: () => server.stop() };
}

/** Resolves to whether there are no faults. */
async function test(name: string): Promise<boolean> {
  const found = await targets[name]?.();
  if (found === undefined) throw new Error(`there is no ${name} to test with`);
  const seed = Number(options.seed);
  const runs = Number(options.runs);
  print(`cluster: ${name}, ${found.plan.nodes} nodes, ${runs} runs, seed ${seed}`);
  try {
    const result = await soakCluster({ ...found.plan, runs, clients: Number(options['at-once']), seed, report: print });
    for (const line of clusterFigures(result)) print(line);
    const { faults } = result.ledger;
    print(faults.count === 0 ? `${name}: no event was lost, duplicated or changed.` : `${name}: FAULTS, seed ${seed}:`);
    for (const line of faults.lines()) print(line);
    return faults.count === 0;
  } finally {
    await found.remove();
  }
}

for (const name of positionals.length > 0 ? positionals : ['redis', 'postgres']) {
  if (!(await test(name))) process.exitCode = 1;
}
