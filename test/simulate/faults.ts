import type { Random } from './random.ts';

/** What may go wrong between a node and the store, for a time. */
const conditions = [
  'stalled', // the store does not respond, and commits nothing until the fault ends
  'refusing', // the store responds to every request with an error, and commits nothing
  'flaky', // the same for half of the requests
  'answers-late', // a commit is taken at once, and its response comes when the fault ends
  'slow', // each message takes a hundred times as long
  'deaf', // notifications are lost, without the node's knowledge
  'deaf-told', // notifications are lost; when the fault ends, the node learns that some may be missing
  'noisy', // notifications come twice, late and in any order
  'unleased', // the node's lease ends although it is renewed, and others claim its runs
  'claims-late', // what the node claims or gives back is done at once, and the answer comes when the fault ends
] as const;
export type Condition = (typeof conditions)[number];

/** The conditions in which a node cannot read from the store. */
const blocking: readonly Condition[] = ['stalled', 'refusing', 'flaky', 'answers-late', 'slow'];

/** Faults of a whole node. */
type Blow = 'pause' | 'crash' | 'stop';

/** These befall one node at a time. Nodes that have all lost their leases take the runs from each other without end. */
const ofOneNode: readonly (Condition | Blow)[] = ['stop', 'pause', 'unleased'];

export interface Fault {
  readonly at: number;
  readonly kind: Condition | Blow;
  /** The number of the node among those that exist at that time; -1 for all of them. */
  readonly node: number;
  /** Milliseconds; after a crash or a stop, until a new node replaces the old one. */
  readonly length: number;
}

export function drawFaults(random: Random, until: number): Fault[] {
  const faults: Fault[] = [];
  const count = random.below(8);
  for (let index = 0; index < count; index += 1) {
    const kind = random.weighted<Fault['kind']>([
      [10, random.of(...conditions, 'deaf', 'deaf', 'refusing')],
      [3, 'pause'],
      [3, 'crash'],
      [1, 'stop'],
    ]);
    const at = random.between(100, until);
    const length = random.of(random.between(50, 1_000), random.between(1_000, 6_000), random.between(6_000, 16_000));
    const node = random.chance(0.3) && !ofOneNode.includes(kind) ? -1 : random.below(4);
    faults.push({ at, kind, node, length });
  }
  // Nodes have to work without notifications.
  if (random.chance(0.2)) faults.push({ at: random.between(0, until / 2), kind: 'deaf', node: -1, length: 16_000 });
  return faults.sort((a, b) => a.at - b.at);
}

/** The conditions that are in force, and the times when they end. */
export class Conditions {
  readonly #until = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  begin(condition: Condition, node: string, until: number): void {
    const key = `${condition} ${node}`;
    this.#until.set(key, Math.max(until, this.#until.get(key) ?? 0));
  }

  /** Milliseconds until a condition ends; 0 if it is not in force. */
  left(condition: Condition, node: string): number {
    return Math.max(0, (this.#until.get(`${condition} ${node}`) ?? 0) - this.#now());
  }

  has(condition: Condition, node: string): boolean {
    return this.left(condition, node) > 0;
  }

  /** Whether a node could reach the store for so many milliseconds; without regard to notifications. */
  quietFor(node: string, milliseconds: number): boolean {
    const since = this.#now() - milliseconds;
    return blocking.every((condition) => (this.#until.get(`${condition} ${node}`) ?? -Infinity) < since);
  }
}
