import { RivuletError } from '../../src/core/errors.ts';
import { isFinal } from '../../src/core/run-state.ts';
import type { Limits } from '../../src/engine/limits.ts';
import { createAgents } from './agents.ts';
import { Clock } from './clock.ts';
import { Conditions, type Fault } from './faults.ts';
import { Invariants } from './invariants.ts';
import { Ledger } from './ledger.ts';
import type { ClientPlan, Plan } from './plan.ts';
import { Random } from './random.ts';
import { allActs } from './script.ts';
import { type Listener, SimNode } from './sim-node.ts';
import { refusal, type StoreFlaw, StoreServer } from './sim-store.ts';

/** The response to a request: `unknown` where none came, so that the request may have taken effect all the same. */
export type Answer<T> = { readonly value: T } | { readonly error: RivuletError } | 'unknown';

/** Milliseconds that a message takes between a client and a node. */
const network = 1;
/** Milliseconds that a client waits for a response. */
const clientPatience = 12_000;

/** Milliseconds in which a node has to stop, even with faults. */
const shutdownGrace = 40_000;

/** Deliberate defects of a simulation; see `flaws.ts`. */
export interface Flaws {
  readonly store?: StoreFlaw;
  readonly limits?: Partial<Limits>;
}

/** The nodes, their store, and their faults. */
export class World {
  readonly clock = new Clock();
  readonly ledger: Ledger;
  readonly conditions = new Conditions(() => this.clock.now);
  readonly server: StoreServer;
  readonly invariants: Invariants;
  readonly random: Random;
  readonly #flaws: Flaws;
  readonly #nodes: SimNode[] = [];
  readonly #agents;
  /** Requests in progress on a node. */
  readonly #pending = new Map<number, { readonly node: string; readonly what: string; readonly at: number }>();
  /** Functions that break the connections of a node. */
  readonly #connections = new Map<string, Set<() => void>>();
  /** Whether the store belongs to one node, like a file. */
  readonly alone: boolean;
  #made = 0;
  #requests = 0;
  /** Until when nodes are paused or missing. */
  #calmAt = 0;

  constructor(plan: Plan, flaws: Flaws, trace?: (line: string) => void) {
    this.ledger = new Ledger(this.clock, trace);
    this.random = new Random(plan.seed).fork('world');
    this.#flaws = flaws;
    this.alone = plan.alone;
    const { clock, conditions } = this;
    this.server = new StoreServer(clock, this.random.fork('store'), conditions, plan.alone, flaws.store);
    const fails = ({ script }: ClientPlan): boolean => allActs(script.acts).some((act) => act.do === 'unstorable');
    const isCalm = plan.faults.length === 0 && !plan.clients.some(fails);
    this.invariants = new Invariants(clock, this.ledger, this.server, conditions, isCalm);
    this.server.audit = this.invariants;
    this.#agents = createAgents(clock, this.invariants);
    for (let index = 0; index < plan.nodes; index += 1) this.#join();
    for (const fault of plan.faults) clock.at('world', fault.at, () => this.#strike(fault));
    const check = (): void => {
      this.invariants.checkLives((node) => this.isUp(node));
      clock.at('world', 1_000, check);
    };
    check();
  }

  /** When the last fault ends. */
  get calmAt(): number {
    return this.#calmAt;
  }

  isUp(node: string): boolean {
    return this.#nodes.some(({ name }) => name === node) && !this.clock.isPaused(node);
  }

  /** The client that requested a run, with or without a response. */
  get clientOf(): ReadonlyMap<string, string> {
    return this.invariants.clients;
  }

  /** Whether every run is final. */
  isSettled(): boolean {
    for (const { status } of this.server.rows.values()) if (!isFinal(status)) return false;
    return true;
  }

  /** Requests that take a living node too long. */
  overdue(): string[] {
    return [...this.#pending.values()]
      .filter(({ node, at }) => this.isUp(node) && this.clock.now - at > 30_000)
      .map(({ node, what }) => `${node} does not answer: ${what}`);
  }

  /** Sends a request to some node. An error outside of the error table is a violation. */
  async request<T>(actor: string, what: string, work: (node: SimNode) => Promise<T>): Promise<Answer<T>> {
    const node = this.#some();
    if (node === undefined) {
      await this.clock.sleep('world', 100);
      return 'unknown';
    }
    this.#requests += 1;
    const number = this.#requests;
    this.ledger.record(actor, `asks ${node.name}: ${what}`);
    const answer = await new Promise<Answer<T>>((resolve) => {
      const answered = (answer: Answer<T>): void => {
        this.#pending.delete(number);
        this.clock.at('world', network, () => resolve(answer));
      };
      this.clock.at('world', clientPatience, () => resolve('unknown'));
      const lost = this.#connected(node.name, () => this.clock.at('world', network, () => resolve('unknown')));
      this.clock.at(node.name, network, () => {
        this.#pending.set(number, { node: node.name, what: `${actor}: ${what}`, at: this.clock.now });
        work(node)
          .then(
            (value) => answered({ value }),
            (error: unknown) => answered(this.#refusal(what, error)),
          )
          .finally(lost);
      });
    });
    this.ledger.record(actor, `${what}: ${describeAnswer(answer)}`);
    return answer;
  }

  /**
   * Opens a stream of a run at some node. Returns a function that drops it. Lines arrive in order; `end` comes once,
   * unless the client drops the stream first.
   */
  connect(actor: string, run_id: string, after: number, until: 'settled' | 'final', listener: Listener): () => void {
    const node = this.#some();
    let open = true;
    let seen = after;
    let close = (): void => {};
    const later = (work: () => void): void => void this.clock.at('world', network, () => open && work());
    const end = (error?: unknown): void => {
      open = false;
      lost();
      listener.end(error);
    };
    const lost = this.#connected(node?.name ?? '', () => later(() => end()));
    if (node === undefined) {
      later(() => end());
      return () => {};
    }
    this.ledger.record(actor, `reads ${run_id} after ${after} at ${node.name}`);
    const drop = (): void => {
      open = false;
      lost();
      this.clock.at(node.name, network, () => close());
    };
    this.clock.at(node.name, network, () => {
      node
        .read(run_id, after, until, {
          line: (id, line) => {
            if (open) this.invariants.shown(actor, run_id, seen, id, line);
            seen = id;
            later(() => listener.line(id, line));
          },
          end: (error) => {
            if (error !== undefined) this.#refusal(`stream of ${run_id}`, error);
            later(() => end(error));
          },
        })
        .then(
          (stop) => {
            close = stop;
            if (!open) stop();
          },
          (error: unknown) => {
            this.#refusal(`stream of ${run_id}`, error);
            later(() => end(error));
          },
        );
    });
    return drop;
  }

  #refusal(what: string, error: unknown): { error: RivuletError } | 'unknown' {
    if (error instanceof RivuletError) return { error };
    // A local store fails with errors of its own, which the protocol answers with 500.
    if (this.alone && error instanceof Error && error.message === refusal) return 'unknown';
    this.ledger.violate('errors are of the table', `${what}: ${error instanceof Error ? error.stack : String(error)}`);
    return 'unknown';
  }

  #some(): SimNode | undefined {
    return this.#nodes[this.random.below(this.#nodes.length)];
  }

  #connected(node: string, broken: () => void): () => void {
    const all = this.#connections.get(node) ?? new Set();
    this.#connections.set(node, all.add(broken));
    return () => void all.delete(broken);
  }

  #join(): void {
    this.#made += 1;
    const name = `node ${this.#made}`;
    this.clock.at(name, 0, () => {
      const more = this.#flaws.limits ?? {};
      const node = new SimNode(name, this.#agents, this.server.handle(name), this.ledger, more);
      this.#nodes.push(node);
      this.ledger.record(name, 'starts');
      node.start().catch((error: unknown) => {
        this.ledger.violate('a node starts', `${name}: ${String(error)}`);
      });
    });
  }

  #strike({ kind, node: index, length }: Fault): void {
    const struck = index < 0 ? [...this.#nodes] : [this.#nodes[index % Math.max(1, this.#nodes.length)]];
    this.#calmAt = Math.max(this.#calmAt, this.clock.now + length);
    for (const node of struck) {
      if (node === undefined) continue;
      const { name } = node;
      this.ledger.record(name, `${kind} for ${length} ms`);
      if (kind === 'pause') this.#pause(name, length);
      else if (kind === 'crash') this.#leave(node, length);
      else if (kind === 'stop') this.#stop(node, length);
      else {
        this.conditions.begin(kind, name, this.clock.now + length);
        if (kind === 'deaf-told') this.clock.at('world', length, () => this.server.reconnected(name));
      }
    }
  }

  #pause(name: string, length: number): void {
    this.clock.pause(name);
    this.clock.at('world', length, () => {
      this.invariants.disturbed(name);
      this.ledger.record(name, 'goes on');
      this.clock.resume(name);
    });
  }

  #stop(node: SimNode, length: number): void {
    const { name } = node;
    let stopped = false;
    // It accepts no new clients.
    this.#nodes.splice(this.#nodes.indexOf(node), 1);
    this.clock.at(name, 0, () => {
      node.stop().then(
        () => {
          stopped = true;
          this.#leave(node, length);
        },
        (error: unknown) => this.ledger.violate('a node stops', `${name}: ${String(error)}`),
      );
    });
    this.clock.at('world', shutdownGrace, () => {
      if (!stopped) this.ledger.violate('a node stops', `${name} has not stopped after ${shutdownGrace} ms`);
    });
  }

  /** A node has died; another one replaces it later. */
  #leave(node: SimNode, length: number): void {
    const { name } = node;
    if (this.#nodes.includes(node)) this.#nodes.splice(this.#nodes.indexOf(node), 1);
    this.clock.kill(name);
    for (const broken of this.#connections.get(name) ?? []) broken();
    this.#connections.delete(name);
    this.clock.at('world', length, () => this.#join());
  }
}

const describeAnswer = (answer: Answer<unknown>): string => {
  if (answer === 'unknown') return 'no answer';
  return 'error' in answer ? `refused, ${answer.error.kind}` : 'done';
};
