/** The CPU time that a node's notifications cost the other nodes. */
import { setTimeout as after } from 'node:timers/promises';
import { stream } from '../load/stream.ts';
import { acp } from '../wires.ts';
import type { Figures, MeasuredOnce } from '../work.ts';
import type { Backend, Nodes } from './backends.ts';
import { withNodes } from './load.ts';
import type { Scale } from './scale.ts';

const streams = 100;
const pace = 10;

async function measure({ executing: [writer], serving: [idle] }: Nodes, tokens: number): Promise<Figures> {
  if (writer === undefined || idle === undefined) throw new Error('a node is missing');
  const write = (many: number): Promise<unknown> => {
    const request = acp.request(many, pace);
    const one = () => stream({ port: writer.port, wire: acp, request, tokens: many });
    return Promise.all(Array.from({ length: streams }, one));
  };
  await write(50);
  const quiet = await idle.usage();
  await after(tokens * pace);
  const [before, own] = [await idle.usage(), await writer.usage()];
  const begun = performance.now();
  await write(tokens);
  const seconds = (performance.now() - begun) / 1000;
  const [later, ownLater] = [await idle.usage(), await writer.usage()];
  const commits = (ownLater.commits ?? 0) - (own.commits ?? 0);
  const nothing = before.cpu - quiet.cpu;
  const receiving = later.cpu - before.cpu;
  return {
    'events/s written': (streams * tokens) / seconds,
    'commits/s': commits / seconds,
    'the writer’s CPU, %': (ownLater.cpu - own.cpu) / seconds / 1e4,
    'idle, nothing written, %': nothing / (tokens * pace) / 10,
    'idle, while it writes, %': receiving / seconds / 1e4,
    'CPU-µs a received commit': (receiving - nothing) / commits,
  };
}

export const notificationsOf = (backends: readonly Backend[], { tokens }: Scale): MeasuredOnce => ({
  name: 'Cost of notifications',
  group: 'notifications',
  about: `A node executes and serves ${streams} streams at ${1000 / pace} tokens/s each; another node only receives the notifications.`,
  columns: [
    { name: 'events/s written', digits: 0 },
    { name: 'commits/s', digits: 0 },
    { name: 'the writer’s CPU, %', digits: 0 },
    { name: 'idle, nothing written, %', digits: 1 },
    { name: 'idle, while it writes, %', digits: 1 },
    { name: 'CPU-µs a received commit', digits: 0 },
  ],
  find: async () => {
    const rows = new Map<string, Figures>();
    for (const { name, nodes } of backends) {
      rows.set(name, await withNodes(nodes(1, 1), (both) => measure(both, Math.ceil(tokens / 3))));
    }
    return rows;
  },
});
