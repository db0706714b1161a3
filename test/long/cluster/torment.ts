import type { Dice } from '../../support/dice.ts';
import type { Act, Ledger } from './ledger.ts';
import type { Node } from './node.ts';

export interface Torment {
  readonly nodes: readonly Node[];
  readonly dice: Dice;
  readonly ledger: Ledger;
  /** Milliseconds after which a silent node's runs are another's. */
  readonly lease: number;
  /** What is done, in this order, all of it; without it, what the dice say, for as long as it goes. */
  readonly acts?: readonly Act[];
  going(): boolean;
  /** Told what is done to whom. */
  did(what: string): void;
}

export type Acts = Record<Act | 'starts', number>;

/**
 * Does to nodes what happens to nodes. At least one is always left in peace, where there are several.
 * Resolves when all of them are up again. @throws Error where one does not come up
 */
export async function torment(world: Torment): Promise<Acts> {
  const { nodes, dice, acts, going } = world;
  const done: Acts = { kill: 0, pause: 0, stop: 0, starts: 0 };
  const planned = [...(acts ?? [])];
  const under = new Set<Promise<void>>();
  const least = nodes.length > 1 ? 2 : 1;
  while (acts === undefined ? going() : planned.length > 0) {
    await passed(300 + dice.below(acts === undefined ? 1_200 : 300));
    const idle = nodes.filter(({ up }) => up);
    // Two at once now and then, but mostly one.
    const [first, ...others] = idle;
    if (first === undefined || idle.length < least || (idle.length < nodes.length && dice.next() > 0.3)) continue;
    const act = planned.shift() ?? dice.of<Act>('kill', 'kill', 'kill', 'pause', 'pause', 'stop', 'stop');
    const acting = suffer(dice.of(first, ...others), act, world, done).finally(() => under.delete(acting));
    under.add(acting);
    acting.catch(() => {}); // who waits for all of them below is told
  }
  await Promise.all(under);
  return done;
}

async function suffer(node: Node, act: Act, { dice, ledger, lease, did }: Torment, done: Acts): Promise<void> {
  done[act] += 1;
  did(`${act} ${node.mark}`);
  ledger.strike(act, node.mark);
  if (act === 'pause') {
    node.pause();
    await passed(lease + 500 + dice.below(lease));
    return node.wake();
  }
  await (act === 'kill' ? node.kill() : node.stop());
  await passed(dice.below(lease));
  await node.start();
  done.starts += 1;
}

/** Time is what this test is about: when something happens to a node is a random event. */
export const passed = (milliseconds: number): Promise<void> => new Promise((go) => setTimeout(go, milliseconds));
