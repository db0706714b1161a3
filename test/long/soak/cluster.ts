import type { RedisCluster, Started } from '../../support/servers.ts';
import { type ClusterFaults, disturbCluster } from './cluster-faults.ts';
import type { Act, Ledger } from './ledger.ts';
import { type Acts, disturbNodes } from './node-faults.ts';
import type { NodesOptions } from './nodes.ts';
import type { OrderMix } from './orders.ts';
import { Outages, readiness } from './outages.ts';
import { Soak, type SoakOptions } from './soak.ts';
import type { Verified } from './verify.ts';

export interface ClusterPlan extends NodesOptions, Pick<SoakOptions, 'stallTimeout' | 'report'> {
  readonly runs: number;
  /** The number of concurrent clients. */
  readonly clients: number;
  /** The acts on nodes, in order. Default: random acts until all runs are final. */
  readonly acts?: readonly Act[];
  /** Restarts the server of the store instead, so many times. */
  readonly restarts?: { readonly server: Started; readonly times: number };
  /** The cluster of the store, whose primaries die and whose slots move meanwhile. */
  readonly cluster?: RedisCluster;
}

export interface ClusterResult {
  readonly seconds: number;
  readonly acts: Acts;
  readonly ledger: Ledger;
  readonly requests: number;
  /** Connections that the balancer cut because their node did not respond. */
  readonly cuts: number;
  readonly outages: Outages | undefined;
  readonly clusterFaults: ClusterFaults | undefined;
  readonly verified: Verified;
  /** Log lines of the nodes and their counts. */
  readonly logged: ReadonlyMap<string, number>;
}

const orders: OrderMix = {
  kinds: [
    ...(['steps', 'steps', 'steps', 'steps', 'merged', 'merged'] as const),
    ...(['ask', 'ask', 'askTwice', 'pinned', 'pinned', 'pinnedAsk', 'turn'] as const),
  ],
  n: [3, 23],
  ms: [8, 48],
};

/** Clients that start in the middle of each outage. */
const clientsInOutage = 3;

/**
 * Clients use several nodes with one store while nodes are killed, paused and stopped, or the store is restarted.
 * The ledger has the faults. @throws Error if a node does not start
 */
export function soakCluster(plan: ClusterPlan): Promise<ClusterResult> {
  const options = { ...plan, limits: ['passivateAfter=300'], orders, direct: false, withoutKey: 0 };
  return Soak.run(options, async (soak) => {
    const { ledger, nodes } = soak;
    const outages = plan.restarts && new Outages(plan.restarts.server, soak.fork(), ledger.faults);
    // A cluster is partly away all the time.
    ledger.storeAway = (since) => plan.cluster !== undefined || (outages?.away(since) ?? false);
    soak.onResponse = (exchange) => outages?.onResponse(exchange);
    let clusterFaults: ClusterFaults | undefined;
    const acts = await soak.load(async () => {
      const disturbed = plan.cluster && disturbCluster(plan.cluster, soak.fork(), soak.isActive);
      if (outages !== undefined) await restartStore(soak, outages, plan.restarts?.times ?? 0);
      const { lease = 2_000 } = plan;
      const disturbedNodes = disturbNodes({
        nodes: nodes.list,
        dice: soak.fork(),
        ledger,
        lease,
        isActive: soak.isActive,
        onAct: soak.onAct,
        ...(outages !== undefined ? { acts: [] } : plan.acts && { acts: plan.acts }),
      });
      const [done, faults] = await Promise.all([disturbedNodes, disturbed]);
      clusterFaults = faults;
      return done;
    });
    for (const [index, wire] of soak.nodeWires().entries()) {
      const status = await readiness(wire);
      // A test of a single node is used with versions that do not have /ready.
      if (status !== 200 && plan.nodes > 1) ledger.faults.add('a node is not ready', `n${index}: ${status}`);
    }
    const verified = await soak.verify();
    await nodes.stop();
    const { requests, cuts } = nodes.balancer;
    return {
      seconds: soak.seconds,
      acts,
      ledger,
      requests,
      cuts,
      outages,
      clusterFaults,
      verified,
      logged: nodes.logged,
    };
  });
}

async function restartStore(soak: Soak, outages: Outages, times: number): Promise<void> {
  const watched = soak.nodeWires().map((wire, index) => outages.watch(wire, `n${index}`, soak.isActive));
  // Orders are placed all the time; in each outage, some are placed at the same moment.
  const placing: Promise<void>[] = [];
  const onOutage = (): void => {
    for (let count = 0; count < clientsInOutage; count += 1) placing.push(soak.placeNext());
  };
  await outages.play(times, soak.isActive, onOutage);
  await soak.unlessAbandoned(Promise.all(placing));
  await Promise.all(watched);
  if (outages.count === 0) soak.ledger.faults.add('there was no outage', 'all runs were final before');
}
