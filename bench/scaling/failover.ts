/** The time that readers of a durable run wait after its node was killed. */
import { createClient } from '../../src/client/client.ts';
import { type Figures, type MeasuredOnce, median } from '../work.ts';
import type { Backend } from './backends.ts';
import { withNodes } from './load.ts';
import type { Scale } from './scale.ts';

/** Milliseconds from the kill to the first event of another node. */
const failover = ({ nodes }: Backend): Promise<number> =>
  withNodes(nodes(2, 1), async ({ executing, serving: [reader] }) => {
    const client = createClient({ url: `http://127.0.0.1:${reader?.port}` });
    const { run_id } = await client.start('steady', 'go on');
    let ticks = 0;
    let pid: number | undefined;
    let killed: number | undefined;
    for await (const event of client.watch(run_id)) {
      const text = event.type === 'message.part' ? (event.part.content ?? '') : '';
      const next = /^in (\d+)/.exec(text)?.[1];
      if (next !== undefined && killed !== undefined) {
        const took = performance.now() - killed;
        await client.cancel(run_id);
        return took;
      }
      if (next !== undefined) pid = Number(next);
      if (text.startsWith('tick')) ticks += 1;
      if (ticks !== 20 || killed !== undefined) continue;
      const victim = executing.find((node) => node.pid === pid);
      if (victim === undefined) throw new Error('no known process executes the run');
      killed = performance.now();
      await victim.stop();
    }
    throw new Error('the run ended before another node had taken it over');
  });

export const failoverOf = (backends: readonly Backend[], { failovers }: Scale): MeasuredOnce => ({
  name: 'Failover',
  group: 'failover',
  about:
    'A durable run ticks every 5 ms; its node is killed (SIGKILL), and a reader at another node waits for the first event after that. The settings are the default ones.',
  columns: [
    { name: 'samples', digits: 0 },
    { name: 'median, ms', digits: 0 },
    { name: 'longest, ms', digits: 0 },
  ],
  find: async () => {
    const rows = new Map<string, Figures>();
    for (const backend of backends) {
      const times: number[] = [];
      while (times.length < failovers) times.push(await failover(backend));
      rows.set(backend.name, {
        samples: times.length,
        'median, ms': median(times),
        'longest, ms': Math.max(...times),
      });
    }
    return rows;
  },
});
