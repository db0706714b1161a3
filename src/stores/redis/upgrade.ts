import { needsOf } from './claims.ts';
import { answered, primariesOf, type RedisClient } from './connection.ts';
import { parseRows } from './run-sets.ts';
import { scriptKeys } from './script.ts';

/** Runs that one call upgrades: a few milliseconds, during which Redis serves no other command. */
const page = 200;

/**
 * Upgrades data of layout 3, in which a queue beside the store had the runs, to layout 4: runs that need an execution wait
 * for a node. Several processes may do so at once, and again after one has stopped half-way.
 */
export async function upgradeToNodes(redis: RedisClient, prefix: string): Promise<void> {
  await listAgents(redis, prefix);
  for await (const keys of scan(redis, `${prefix}bull:`)) await answered(redis.unlink(keys));
  for (let from = '-'; ; ) {
    const whole = ['ZRANGEBYLEX', 'unfinished', from, '+', page, page, '', '', '', ''] as const;
    const [last, found] = await answered(redis.rivuletList(...scriptKeys(prefix), ...whole));
    const runs = parseRows(found).flatMap((row) => {
      const { needs_node, needs_agent } = needsOf(row);
      return [row.run_id, needs_node, needs_agent];
    });
    await answered(redis.rivuletUpgradeRuns(...scriptKeys(prefix), 3, last === '' ? 4 : '', ...runs));
    if (last === '') return;
    from = `(${last}`;
  }
}

/** Writes the set `agents`, without which some builds have written runs. */
async function listAgents(redis: RedisClient, prefix: string): Promise<void> {
  const start = `${prefix}agent:`;
  for await (const keys of scan(redis, start))
    await answered(
      redis.sadd(
        `${prefix}agents`,
        keys.map((key) => key.slice(start.length)),
      ),
    );
}

/** The keys that begin with a text, in pages that are not empty. */
async function* scan(redis: RedisClient, start: string): AsyncGenerator<string[]> {
  const match = `${start.replace(/[\\*?[\]]/g, '\\$&')}*`;
  for (const server of primariesOf(redis))
    for await (const keys of server.scanStream({ match, count: 1_000 }) as AsyncIterable<string[]>)
      if (keys.length > 0) yield keys;
}
