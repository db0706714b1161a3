import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { isFinal } from '../../../src/index.ts';
import { Dice } from '../../support/dice.ts';
import type { Act } from '../soak/ledger.ts';
import { Faults, sleep } from '../soak/measurements.ts';
import type { Node } from '../soak/node.ts';
import { type Acts, disturb, disturbNodes, noActs } from '../soak/node-faults.ts';
import { Nodes } from '../soak/nodes.ts';
import { Wire } from '../soak/wire.ts';
import { Customer } from './customer.ts';
import { EffectLedger, type RunLine } from './effect-ledger.ts';
import type { Placed } from './history.ts';
import { checkInvariants } from './invariants.ts';
import { agentFiles, newOrders, type Order } from './orders.ts';

/** Milliseconds, short so that many faults fit into a test. */
const times = { lease: 1_500, cancelGrace: 2_000, shutdownGrace: 3_000 };
const limits = [
  ...['passivateAfter=300', 'sweepInterval=250', 'pollInterval=1000'],
  ...[`cancelGrace=${times.cancelGrace}`, `shutdownGrace=${times.shutdownGrace}`],
];
const requestTimeout = 15_000;
/**
 * Many kills come from the orders. A single node has to be up for long enough to try the
 * runs that were in the process before, a few at a time; a pause only delays it.
 */
const ofSeveral = { every: 1_200, mix: ['kill', 'pause', 'pause', 'pause', 'stop', 'stop', 'stop'] } as const;
const ofOne = { every: 8_000, mix: ['kill', 'kill', 'kill', 'pause', 'stop', 'stop', 'stop'] } as const;

export interface EffectsPlan {
  /** URL of the store. */
  readonly store: string;
  /** Nodes that execute runs, and further ones that only serve requests. */
  readonly nodes: number;
  readonly fronts: number;
  readonly runs: number;
  /** The number of concurrent clients. */
  readonly clients: number;
  readonly seed: number;
  /** See CustomerOptions. */
  readonly maxQuiet: number;
  /** The acts on nodes, in order, beside those of the orders. Default: random acts until all runs are final. */
  readonly acts?: readonly Act[];
  /** Called with the progress, every few seconds. */
  readonly report?: (line: string) => void;
}

export interface EffectsResult {
  readonly faults: Faults;
  readonly ledger: EffectLedger;
  readonly placed: readonly Placed[];
  readonly acts: Acts;
  readonly seconds: number;
}

/** Agents act outside while their nodes are killed, paused and stopped. @throws Error if a node does not start */
export async function soakEffects(plan: EffectsPlan): Promise<EffectsResult> {
  const faults = new Faults(6_000);
  const nodes = await Nodes.open({ ...plan, ...times, limits, agents: agentFiles }, faults);
  const ledger = new EffectLedger(join(nodes.folder, 'ledger.jsonl'));
  const abandoned = new AbortController();
  setMaxListeners(0, abandoned.signal);
  const [first, ...others] = nodes.list.map(({ url }) => new Wire(url, { signal: abandoned.signal, requestTimeout }));
  const balancer = new Wire(nodes.balancer.url, { signal: abandoned.signal, requestTimeout });
  if (first === undefined) throw new Error('there are no nodes');
  try {
    await nodes.start();
    const soak = new EffectsSoak(plan, nodes.list.slice(0, plan.nodes), ledger);
    const { placed, acts, seconds } = await soak.run({ balancer, nodes: [first, ...others] });
    await nodes.stop();
    ledger.read();
    checkInvariants(ledger, placed, { ...times, seed: plan.seed }, faults);
    return { faults, ledger, placed, acts, seconds };
  } finally {
    abandoned.abort();
    for (const wire of [balancer, first, ...others]) wire.close();
    ledger.close();
    await nodes.close(faults.count > 0);
    if (faults.count > 0) plan.report?.(`the ledger is kept in ${nodes.folder}`);
  }
}

/** The clients, and the faults of the nodes. */
class EffectsSoak {
  readonly #plan: EffectsPlan;
  readonly #workers: readonly Node[];
  readonly #ledger: EffectLedger;
  readonly #dice: Dice;
  readonly #orders: (readonly Order[])[] = [];
  readonly #placed: Placed[] = [];
  readonly #acts = noActs();
  readonly #startedAt = performance.now();
  #active = true;
  #upTime = 0;

  constructor(plan: EffectsPlan, workers: readonly Node[], ledger: EffectLedger) {
    this.#plan = plan;
    this.#workers = workers;
    this.#ledger = ledger;
    this.#dice = new Dice(plan.seed);
    for (let runs = 0; runs < plan.runs; runs += this.#orders.at(-1)?.length ?? 0)
      this.#orders.push(newOrders(this.#dice, `${plan.seed}-${this.#orders.length}`));
  }

  async run(wires: { readonly balancer: Wire; readonly nodes: readonly [Wire, ...Wire[]] }) {
    const faults = {
      dice: new Dice(this.#dice.below(2 ** 32)),
      ledger: this.#ledger,
      lease: times.lease,
      onAct: () => {},
      done: this.#acts,
    };
    const killing: Promise<void>[] = [];
    this.#ledger.follow((line) => {
      const node = this.#nodeToKill(line);
      if (node === undefined) return;
      const act = disturb(node, 'kill', faults);
      killing.push(act);
      act.catch(() => {}); // Promise.all below reports it
    });
    const { maxQuiet, clients, acts } = this.#plan;
    const shared = {
      ...wires,
      ledger: this.#ledger,
      maxQuiet,
      upTime: () => this.#upTime,
      onPlaced: (placed: Placed): void => void this.#placed.push(placed),
    };
    const work = async (): Promise<void> => {
      const dice = new Dice(this.#dice.below(2 ** 32));
      const customer = new Customer({ ...shared, dice });
      for (let orders = this.#orders.shift(); orders !== undefined; orders = this.#orders.shift())
        await customer.place(orders);
    };
    const working = Promise.all(Array.from({ length: clients }, work)).finally(() => {
      this.#active = false;
    });
    const isActive = (): boolean => this.#active;
    const pace = this.#workers.length > 1 ? ofSeveral : ofOne;
    await Promise.all([
      working,
      disturbNodes({ ...faults, ...pace, ...(acts && { acts }), nodes: this.#workers, isActive }),
      this.#watch(),
    ]);
    await Promise.all(killing);
    return { placed: this.#placed, acts: this.#acts, seconds: this.#seconds };
  }

  /** The node that has begun a step in which it has to die, if it is up. */
  #nodeToKill({ dies, node: mark }: RunLine): Node | undefined {
    return dies && this.#workers.find((node) => node.mark === mark && node.up);
  }

  get #seconds(): number {
    return Math.round((performance.now() - this.#startedAt) / 1_000);
  }

  /** Measures for how long a node was up, and reports the progress. */
  async #watch(): Promise<void> {
    const { runs, report = () => {} } = this.#plan;
    for (let [turn, at] = [1, performance.now()]; this.#active; turn += 1) {
      await sleep(100);
      const before = at;
      at = performance.now();
      if (this.#workers.some(({ up }) => up)) this.#upTime += at - before;
      if (turn % 100 !== 0) continue;
      const { kill, pause, stop } = this.#acts;
      const ended = this.#placed.filter(({ status }) => isFinal(status)).length;
      report(`${this.#seconds} s: ${ended} of ${runs} runs ended; ${kill} kills, ${pause} pauses, ${stop} stops`);
    }
  }
}
