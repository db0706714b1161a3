import { afterAll, expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../../src/stores/open.ts';
import { type RedisCluster, startRedisCluster } from '../../support/servers.ts';
import { serveChats } from './agent.ts';
import { clients } from './clients.ts';
import { rowOf } from './page.ts';
import { cellsOf } from './seen.ts';

const cluster = await startRedisCluster({ replicas: 1 });
afterAll(() => cluster?.stop());

/** Moves slots between the primaries, and has each replaced by its replica. */
async function changeCluster(cluster: RedisCluster): Promise<void> {
  for (const { id } of await cluster.primaries()) {
    const [largest, smallest] = [(await cluster.primaries()).at(0), (await cluster.primaries()).at(-1)];
    if (largest !== undefined && smallest !== undefined) await cluster.move(largest.id, smallest.id, 2_000);
    const primary = (await cluster.primaries()).find((one) => one.id === id);
    if (primary !== undefined) await cluster.handOver(primary);
  }
}

it.skipIf(cluster === undefined)(
  'official clients show what they otherwise show, while slots of a Redis Cluster move and replicas take over',
  async () => {
    if (cluster === undefined) throw new Error('there is no cluster');
    let servers = 0;
    const serve = async () => {
      servers += 1;
      const store = await openStore(`${cluster.url}?prefix=chats-${servers}`);
      onTestFinished(() => store.close());
      return serveChats({ store });
    };
    let isOver = false;
    const changed = changeCluster(cluster).finally(() => {
      isOver = true;
    });
    const chats = clients.map(async ([name, see]) => {
      do expect([name, ...cellsOf(await see(serve))]).toEqual([name, ...(rowOf(name) ?? [])]);
      while (!isOver);
    });
    await Promise.all([changed, ...chats]);
  },
);
