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
 * `isActive`.
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
    const [largest, smallest, any] = [primaries[0], primaries.at(-1), primaries[dice.below(primaries.length)]];
    if (largest === undefined || smallest === undefined || any === undefined) throw new Error('there are no primaries');
    if (faults.moves > faults.failovers) {
      await cluster.failOver(any);
      faults.failovers += 1;
    } else {
      // More than lie between two parts of a store. No primary loses all of its slots, and with them its vote.
      await cluster.move(largest.id, smallest.id, 2_000);
      faults.moves += 1;
    }
  }
  return faults;
}
