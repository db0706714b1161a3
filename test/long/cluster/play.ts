import { setMaxListeners } from 'node:events';
import { Dice } from '../../support/dice.ts';
import type { Started } from '../../support/servers.ts';
import { newOrders, type Order } from './agents.ts';
import { Customer } from './customer.ts';
import { Faults } from './faults.ts';
import { type Act, isOver, Ledger } from './ledger.ts';
import { Nodes, type NodesOptions } from './nodes.ts';
import { Outages, readiness } from './outages.ts';
import { type Acts, torment } from './torment.ts';
import { type Verified, verify } from './verify.ts';
import { watch } from './watch.ts';
import { Wire } from './wire.ts';

export interface Plan extends NodesOptions {
  readonly runs: number;
  /** How many customers there are at once. */
  readonly atOnce: number;
  /** What is done to nodes, in this order. Default: whatever the dice say, until all runs are over. */
  readonly acts?: readonly Act[];
  /** The server of the store, where that is restarted instead, and how often. */
  readonly restarts?: { readonly server: Started; readonly times: number };
  /** Milliseconds in which something has to be heard of some run, and in which a request is answered. Default 60,000 and half of it. */
  readonly requestTimeout?: number;
  /** Told how it goes, every few seconds. */
  readonly report?: (line: string) => void;
}

export interface Played {
  readonly seconds: number;
  readonly acts: Acts;
  readonly ledger: Ledger;
  readonly requests: number;
  /** Connections that the balancer cut because their node did not answer any more. */
  readonly cuts: number;
  readonly outages: Outages | undefined;
  readonly verified: Verified;
  /** What the nodes logged, and how often. */
  readonly logged: ReadonlyMap<string, number>;
}

/** Customers who come in the middle of each outage. */
const latecomers = 3;

/**
 * Customers use nodes that things happen to, and what they were told is held to what there is in the end. What is
 * wrong is in the ledger's faults. @throws Error where a node does not come up
 */
export async function play(plan: Plan): Promise<Played> {
  const faults = new Faults();
  const nodes = await Nodes.open(plan, faults);
  const game = new Game(plan, nodes, new Ledger(faults));
  try {
    await nodes.start();
    return await game.play();
  } finally {
    game.close();
    await nodes.close();
  }
}

class Game {
  readonly #plan: Plan;
  readonly #nodes: Nodes;
  readonly #ledger: Ledger;
  readonly #dice: Dice;
  readonly #outages: Outages | undefined;
  readonly #began = performance.now();
  readonly #wires: Wire[] = [];
  /** Ends what customers do; and all there is. */
  readonly #abandoned = new AbortController();
  readonly #closed = new AbortController();
  /** What was done to nodes since the last report. */
  readonly #done: string[] = [];
  #given = 0;
  #going = true;

  constructor(plan: Plan, nodes: Nodes, ledger: Ledger) {
    this.#plan = plan;
    this.#nodes = nodes;
    this.#ledger = ledger;
    this.#dice = new Dice(plan.seed);
    ledger.calm = (name, since) => nodes.calm(name, since);
    this.#outages = plan.restarts && new Outages(plan.restarts.server, this.#fork(), ledger.faults);
    ledger.storeAway = (since) => this.#outages?.away(since) ?? false;
    for (const { signal } of [this.#abandoned, this.#closed]) setMaxListeners(0, signal);
  }

  async play(): Promise<Played> {
    const { report = () => {}, requestTimeout = 60_000 } = this.#plan;
    const wires = this.#nodes.list.map(({ url }) => this.#wire(url));
    const watching = watch({
      ledger: this.#ledger,
      nodes: wires,
      requestTimeout,
      going: () => this.#going,
      report: () => report(this.#progress()),
      abandon: () => this.#abandoned.abort(),
    });
    const [acts] = await Promise.all([this.#disturb(wires), this.#trade()]);
    await watching;
    report('no run is going on any more; what each node has is held to what was seen');
    for (const [index, wire] of wires.entries()) {
      const status = await readiness(wire);
      // Alone it may be one that does not know of this question yet.
      if (status !== 200 && wires.length > 1) this.#ledger.faults.add('a node is not ready', `n${index}: ${status}`);
    }
    const verified = await verify(this.#ledger, wires, !this.#abandoned.signal.aborted);
    await this.#nodes.stop();
    return {
      seconds: Math.round((performance.now() - this.#began) / 1000),
      acts,
      ledger: this.#ledger,
      requests: this.#nodes.balancer.requests,
      cuts: this.#nodes.balancer.cuts,
      outages: this.#outages,
      verified,
      logged: this.#nodes.logged,
    };
  }

  close(): void {
    this.#going = false;
    this.#abandoned.abort();
    this.#closed.abort();
    for (const wire of this.#wires) wire.close();
  }

  /** A bounded number of customers, until all orders are given and carried out. */
  async #trade(): Promise<void> {
    const customer = async (): Promise<void> => {
      const one = this.#customer();
      for (let orders = this.#next(); orders !== undefined; orders = this.#next()) await one.order(orders);
    };
    try {
      await this.#unlessAbandoned(Array.from({ length: this.#plan.atOnce }, customer));
    } finally {
      this.#going = false;
    }
  }

  /** What happens to the nodes, or to their store. */
  async #disturb(wires: readonly Wire[]): Promise<Acts> {
    const { restarts, lease = 2_000, acts } = this.#plan;
    const going = (): boolean => this.#going;
    const outages = this.#outages;
    if (outages === undefined || restarts === undefined) {
      const dice = this.#fork();
      const did = (what: string): void => void this.#done.push(what);
      return torment({ nodes: this.#nodes.list, dice, ledger: this.#ledger, lease, going, did, ...(acts && { acts }) });
    }
    const watched = wires.map((wire, index) => outages.watch(wire, `n${index}`, going));
    // Runs are made all the time, but only in an outage by so many at once.
    const late: Promise<void>[] = [];
    const begun = (): void => {
      for (let count = 0; count < latecomers; count += 1) late.push(this.#customer().order(this.#next() ?? []));
    };
    await outages.play(restarts.times, going, begun);
    await this.#unlessAbandoned(late);
    await Promise.all(watched);
    if (outages.count === 0) this.#ledger.faults.add('there was no outage', 'all runs were over before it');
    return { kill: 0, pause: 0, stop: 0, starts: 0 };
  }

  async #unlessAbandoned(doing: readonly Promise<void>[]): Promise<void> {
    await Promise.all(doing).catch((error: unknown) => {
      if (!this.#abandoned.signal.aborted) throw error;
    });
  }

  #next(): readonly Order[] | undefined {
    const { runs, seed } = this.#plan;
    if (this.#given >= runs || this.#abandoned.signal.aborted) return undefined;
    const orders = newOrders(this.#dice, `${seed}-${this.#given}`);
    this.#given += orders.length;
    return orders;
  }

  #customer(): Customer {
    const wire = this.#wire(this.#nodes.balancer.url, this.#abandoned.signal);
    return new Customer({ wire, ledger: this.#ledger, dice: this.#fork() });
  }

  #wire(url: string, signal = this.#closed.signal): Wire {
    const { requestTimeout = 60_000 } = this.#plan;
    const outages = signal === this.#closed.signal ? undefined : this.#outages;
    const answered = outages && { answered: outages.answered.bind(outages) };
    const wire = new Wire(url, { signal, requestTimeout: requestTimeout / 2, ...answered });
    this.#wires.push(wire);
    return wire;
  }

  #fork(): Dice {
    return new Dice(this.#dice.below(2 ** 32));
  }

  #progress(): string {
    const { runs, eventsSeen, reconnects, faults } = this.#ledger;
    const over = [...runs.values()].filter(isOver).length;
    const seconds = Math.round((performance.now() - this.#began) / 1000);
    const wrong = faults.count === 0 ? '' : `, ${faults.count} FAULTS`;
    const done = this.#done.length === 0 ? '' : `; ${this.#done.splice(0).join(', ')}`;
    return `${seconds} s: ${over} of ${runs.size} runs over, ${eventsSeen} events seen, ${reconnects} reconnects${wrong}${done}`;
  }
}
