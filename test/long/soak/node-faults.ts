import type { Dice } from '../../support/dice.ts';
import type { Act, Ledger } from './ledger.ts';
import { sleep } from './measurements.ts';
import type { Node } from './node.ts';

export interface NodeFaultOptions {
  readonly nodes: readonly Node[];
  readonly dice: Dice;
  readonly ledger: Pick<Ledger, 'strike'>;
  /** Milliseconds after which another node takes over the runs of a silent one. */
  readonly lease: number;
  /** Milliseconds between two random acts, beside 300. Default: up to 1,200. */
  readonly every?: number;
  /** The random acts, each as often as it occurs here. */
  readonly mix?: readonly [Act, ...Act[]];
  /** The acts, in order. Default: random acts while `isActive` returns true. */
  readonly acts?: readonly Act[];
  isActive(): boolean;
  /** Called for each act. */
  onAct(description: string): void;
  /** Where the acts are counted. */
  readonly done?: Acts;
}

export type Acts = Record<Act | 'starts', number>;

export const noActs = (): Acts => ({ kill: 0, pause: 0, stop: 0, starts: 0 });

const usualMix = ['kill', 'kill', 'kill', 'pause', 'pause', 'stop', 'stop'] as const;

/**
 * Kills, pauses and stops nodes. Of several nodes, at least one stays up.
 * Resolves when all nodes are up again. @throws Error if one does not start
 */
export async function disturbNodes(options: NodeFaultOptions): Promise<Acts> {
  const { nodes, dice, acts, every = 1_200, mix = usualMix, isActive, done = noActs() } = options;
  const planned = [...(acts ?? [])];
  const active = new Set<Promise<void>>();
  const minUp = nodes.length > 1 ? 2 : 1;
  while (acts === undefined ? isActive() : planned.length > 0) {
    await sleep(300 + dice.below(acts === undefined ? every : 300));
    const up = nodes.filter((node) => node.up);
    // Sometimes two nodes at the same time.
    const [first, ...others] = up;
    if (first === undefined || up.length < minUp || (up.length < nodes.length && dice.next() > 0.3)) continue;
    const act = planned.shift() ?? dice.of(...mix);
    const acting = disturb(dice.of(first, ...others), act, { ...options, done }).finally(() => active.delete(acting));
    active.add(acting);
    acting.catch(() => {}); // Promise.all below reports it
    // A single node is up for the next pause, however long its start takes.
    if (nodes.length === 1) await acting;
  }
  await Promise.all(active);
  return done;
}

/** Acts on a node. Resolves when it is up again. @throws Error if it does not start */
export async function disturb(
  node: Node,
  act: Act,
  {
    dice,
    ledger,
    lease,
    onAct,
    done = noActs(),
  }: Pick<NodeFaultOptions, 'dice' | 'ledger' | 'lease' | 'onAct' | 'done'>,
): Promise<void> {
  done[act] += 1;
  onAct(`${act} ${node.mark}`);
  ledger.strike(act, node.mark);
  if (act === 'pause') {
    node.pause();
    await sleep(lease + 500 + dice.below(lease));
    return node.wake();
  }
  await (act === 'kill' ? node.kill() : node.stop());
  await sleep(dice.below(lease));
  await node.start();
  done.starts += 1;
}
