import { setMaxListeners } from 'node:events';
import { Dice } from '../../support/dice.ts';
import { Auditor } from './auditor.ts';
import { Client } from './client.ts';
import { isOver, Ledger } from './ledger.ts';
import { Faults } from './measurements.ts';
import { Nodes, type NodesOptions } from './nodes.ts';
import { newOrders, type Order, type OrderMix } from './orders.ts';
import { watchForStall } from './stall-watch.ts';
import { type Verified, type VerifyOptions, verify } from './verify.ts';
import { type Exchange, Wire } from './wire.ts';

export interface SoakOptions extends NodesOptions {
  /** The number of concurrent clients. */
  readonly clients: number;
  /** The number of runs. Default: until `stopOrders`. */
  readonly runs?: number;
  readonly orders: OrderMix;
  /** Clients reach the only node without the balancer: every failure is a fault, unless something was done to the node. */
  readonly direct: boolean;
  /** See ClientOptions. */
  readonly withoutKey: number;
  /** Milliseconds without an event of any run after which the test is abandoned; half of it is the time-out of a request. */
  readonly stallTimeout?: number;
  /** Called with the progress, every few seconds. */
  readonly report?: ((line: string) => void) | undefined;
}

/** A test of nodes under load: clients create, read, answer and cancel runs; a plan disturbs the nodes meanwhile. */
export class Soak {
  readonly options: SoakOptions;
  readonly nodes: Nodes;
  readonly ledger: Ledger;
  readonly dice: Dice;
  /** Called for each response that a client gets. */
  onResponse: (exchange: Exchange) => void = () => {};
  readonly #startedAt = performance.now();
  readonly #wires: Wire[] = [];
  /** Aborts the clients, and all requests. */
  readonly #abandoned = new AbortController();
  readonly #closed = new AbortController();
  /** Acts since the last report. */
  readonly #acts: string[] = [];
  #placed = 0;
  #ordering = true;
  #active = true;

  private constructor(options: SoakOptions, nodes: Nodes, ledger: Ledger) {
    this.options = options;
    this.nodes = nodes;
    this.ledger = ledger;
    this.dice = new Dice(options.seed);
    ledger.calm = (name, since) => nodes.calm(name, since);
    for (const { signal } of [this.#abandoned, this.#closed]) setMaxListeners(0, signal);
  }

  /** Starts the nodes, calls `test` and removes everything. @throws Error if a node does not start */
  static async run<T>(options: SoakOptions, test: (soak: Soak) => Promise<T>): Promise<T> {
    const faults = new Faults();
    const nodes = await Nodes.open(options, faults);
    const soak = new Soak(options, nodes, new Ledger(faults));
    let failed = true;
    try {
      await nodes.start();
      const result = await test(soak);
      failed = faults.count > 0;
      return result;
    } finally {
      soak.#close();
      await nodes.close(failed);
      if (failed) options.report?.(`the files are kept in ${nodes.folder}`);
    }
  }

  /** Runs the clients while `disturb` acts on the nodes. Resolves when all runs of the clients are final. */
  async load<T>(disturb: () => Promise<T>): Promise<T> {
    const { report = () => {}, stallTimeout = 60_000, clients } = this.options;
    const watching = watchForStall({
      ledger: this.ledger,
      nodes: this.nodeWires(),
      stallTimeout,
      isActive: () => this.#active,
      report: () => report(this.#progress()),
      abandon: () => this.#abandoned.abort(),
    });
    const work = Promise.all(Array.from({ length: clients }, () => this.#placeOrders())).finally(() => {
      this.#active = false;
    });
    const [result] = await Promise.all([disturb(), this.unlessAbandoned(work)]);
    await watching;
    return result;
  }

  verify(options: Omit<VerifyOptions, 'complete'> = {}): Promise<Verified> {
    this.options.report?.('no run is active; the nodes are compared with the received events');
    return verify(this.ledger, this.nodeWires(), { ...options, complete: !this.#abandoned.signal.aborted });
  }

  /** Whether clients still have open runs or orders. */
  readonly isActive = (): boolean => this.#active;

  /** Clients place no new orders. */
  stopOrders(): void {
    this.#ordering = false;
  }

  /** Adds an act to the next report. */
  readonly onAct = (description: string): void => void this.#acts.push(description);

  /** Places the next orders with a client of its own. */
  async placeNext(): Promise<void> {
    await this.#client().place(this.#nextOrders() ?? []);
  }

  /** Calls `audit` again and again, until the clients are done. */
  async auditWhileActive(): Promise<void> {
    const auditor = new Auditor(this.#clientWire(), this.ledger, this.fork());
    const auditing = async (): Promise<void> => {
      while (this.#active) await auditor.audit();
    };
    await this.unlessAbandoned(auditing());
  }

  async unlessAbandoned(work: Promise<unknown>): Promise<void> {
    await work.catch((error: unknown) => {
      if (!this.#abandoned.signal.aborted) throw error;
    });
  }

  /** A connection to each node. */
  nodeWires(): Wire[] {
    return this.nodes.list.map(({ url }) => this.#wire(url, this.#closed.signal));
  }

  fork(): Dice {
    return new Dice(this.dice.below(2 ** 32));
  }

  get seconds(): number {
    return Math.round((performance.now() - this.#startedAt) / 1000);
  }

  async #placeOrders(): Promise<void> {
    const client = this.#client();
    // With `direct`, a client keeps its session for some orders, so that histories grow.
    let session: string | undefined;
    for (let orders = this.#nextOrders(); orders !== undefined; orders = this.#nextOrders()) {
      const keepsSession = this.options.direct && orders.length === 1 && this.dice.next() < 0.8;
      session = keepsSession ? (session ?? crypto.randomUUID()) : undefined;
      // A run of unknown outcome may await a reply for ever, so its session is not used again.
      if (!(await client.place(orders, session))) session = undefined;
    }
  }

  #nextOrders(): readonly Order[] | undefined {
    const { runs = Number.POSITIVE_INFINITY, seed, orders: mix } = this.options;
    if (!this.#ordering || this.#placed >= runs || this.#abandoned.signal.aborted) return undefined;
    const orders = newOrders(this.dice, mix, `${seed}-${this.#placed}`);
    this.#placed += orders.length;
    return orders;
  }

  #client(): Client {
    const { direct, withoutKey } = this.options;
    return new Client({ wire: this.#clientWire(), ledger: this.ledger, dice: this.fork(), direct, withoutKey });
  }

  #clientWire(): Wire {
    const { direct } = this.options;
    const url = direct ? this.nodes.first.url : this.nodes.balancer.url;
    return this.#wire(url, this.#abandoned.signal, {
      onResponse: (exchange) => {
        if (direct && exchange.status >= 500)
          this.#checkCalm(`${exchange.path}: ${exchange.status}`, exchange.startedAt);
        this.onResponse(exchange);
      },
      onCut: (error, startedAt) => direct && this.#checkCalm(error.message, startedAt),
    });
  }

  /** A failed request is a fault if nothing was done to the node since it started. */
  #checkCalm(description: string, startedAt: number): void {
    if (this.nodes.calm('n0', startedAt))
      this.ledger.faults.add('a request failed while the server was up', description);
  }

  #wire(url: string, signal: AbortSignal, hooks: Partial<ConstructorParameters<typeof Wire>[1]> = {}): Wire {
    const { stallTimeout = 60_000 } = this.options;
    const wire = new Wire(url, { signal, requestTimeout: stallTimeout / 2, ...hooks });
    this.#wires.push(wire);
    return wire;
  }

  #progress(): string {
    const { runs, eventsReceived, reconnects, faults } = this.ledger;
    const over = [...runs.values()].filter(isOver).length;
    const count = faults.count === 0 ? '' : `, ${faults.count} FAULTS`;
    const acts = this.#acts.length === 0 ? '' : `; ${this.#acts.splice(0).join(', ')}`;
    return `${this.seconds} s: ${over} of ${runs.size} runs final, ${eventsReceived} events received, ${reconnects} reconnects${count}${acts}`;
  }

  #close(): void {
    this.#active = false;
    this.#abandoned.abort();
    this.#closed.abort();
    for (const wire of this.#wires) wire.close();
  }
}
