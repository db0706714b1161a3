import type { Dice } from '../../support/dice.ts';
import type { RedisCluster } from '../../support/servers.ts';
import { sleep } from './measurements.ts';

/** How often each fault has happened. */
export interface ClusterFaults {
  failovers: number;
  moves: number;
}

/**
 * Kills primaries of a Redis Cluster, which their replicas replace, and moves slots from one to another, in turn, while
 * `isActive`. Half of a primary's slots move, and so some that have data.
 */
export async function disturbCluster(
  cluster: RedisCluster,
  dice: Dice,
  isActive: () => boolean,
): Promise<ClusterFaults> {
  const faults: ClusterFaults = { failovers: 0, moves: 0 };
  while (isActive()) {
    await sleep(500 + dice.below(1_500));
    const primaries = await cluster.primaries();
    const from = primaries[dice.below(primaries.length)];
    const to = primaries.find((one) => one !== from);
    if (from === undefined || to === undefined) continue;
    if (faults.moves > faults.failovers) {
      await cluster.failOver(from);
      faults.failovers += 1;
    } else {
      await cluster.move(from.id, to.id, 2_000);
      faults.moves += 1;
    }
  }
  return faults;
}
