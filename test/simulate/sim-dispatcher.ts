import type { Dispatcher, Execute, Lease, Released } from '../../src/core/dispatcher.ts';
import type { Clock, Owner } from './clock.ts';
import type { Conditions } from './faults.ts';
import type { Random } from './random.ts';

interface Worker {
  readonly node: Owner;
  readonly slots: number;
  readonly execute: Execute;
  readonly onReleased: Released;
  /** Executions by run: a run that is dispatched again after its lease has ended is not executed twice. */
  readonly held: Map<string, ReturnType<Execute>>;
  resting: number;
  paused: boolean;
  working: number;
}

/** A job has the name of its run; each run has one job at most. */
interface Job {
  readonly run_id: string;
  worker: Worker | undefined;
  /** When the lease ends, unless it is renewed. */
  until: number;
  /** The number of the last execution: calls of earlier ones are ignored. */
  token: number;
}

const latency = 1;

/** A queue with leases that nodes share, in virtual time, like a queue on the store's server. */
export class SimQueue {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #conditions: Conditions;
  readonly #lease: number;
  readonly #jobs = new Map<string, Job>();
  readonly #workers: Worker[] = [];

  constructor(clock: Clock, random: Random, conditions: Conditions, lease: number) {
    this.#clock = clock;
    this.#random = random;
    this.#conditions = conditions;
    this.#lease = lease;
    const look = (): void => {
      this.#expire();
      this.#clock.at('world', lease / 2, look);
    };
    look();
  }

  /** A node's handle of the queue. */
  handle(node: Owner, slots: number): Dispatcher {
    let worker: Worker | undefined;
    let stopRenewing = (): void => {};
    return {
      shared: true,
      offer: (run_ids) => this.#offer(node, run_ids),
      start: async (execute, onReleased) => {
        worker = { node, slots, execute, onReleased, held: new Map(), resting: 0, paused: false, working: 0 };
        this.#workers.push(worker);
        stopRenewing = this.#renew(worker);
        this.#give();
      },
      pause: async () => {
        if (worker !== undefined) worker.paused = true;
      },
      close: async () => {
        await Promise.all(worker?.held.values() ?? []);
        stopRenewing();
      },
    };
  }

  /** Whether a run is queued or executing. */
  has(run_id: string): boolean {
    return this.#jobs.has(run_id);
  }

  #offer(node: Owner, run_ids: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#clock.at('world', latency * (0.5 + this.#random.next()), () => {
        const refused = this.#conditions.has('offers-refused', node);
        if (!refused || this.#random.chance(0.5)) for (const run_id of run_ids) this.#add(run_id);
        this.#give();
        this.#clock.at(node, latency, () => {
          if (refused) reject(new Error('the simulated queue refuses'));
          else resolve();
        });
      });
    });
  }

  #add(run_id: string): void {
    if (!this.#jobs.has(run_id)) this.#jobs.set(run_id, { run_id, worker: undefined, until: 0, token: 0 });
  }

  #give(): void {
    for (const job of this.#jobs.values()) {
      if (job.worker !== undefined) continue;
      const free = this.#workers.filter(
        (one) => !one.paused && one.working - one.resting < one.slots && this.#hears(one),
      );
      const worker = free[this.#random.below(free.length)];
      if (worker === undefined) return;
      this.#assign(job, worker);
    }
  }

  #hears({ node }: Worker): boolean {
    return !this.#conditions.has('unleased', node) && !this.#clock.isPaused(node);
  }

  #assign(job: Job, worker: Worker): void {
    job.worker = worker;
    job.until = this.#clock.now + this.#lease;
    job.token += 1;
    worker.working += 1;
    const { token } = job;
    this.#clock.at(worker.node, latency, () => void this.#execute(job, token, worker));
  }

  async #execute(job: Job, token: number, worker: Worker): Promise<void> {
    const { run_id } = job;
    let rests = false;
    const rest = (value: boolean): void => {
      if (rests !== value) worker.resting += value ? 1 : -1;
      rests = value;
      this.#give();
    };
    const lease: Lease = { rest: () => rest(true), wake: () => rest(false) };
    const held = worker.held.get(run_id);
    const executing = held ?? worker.execute(run_id, lease);
    if (held === undefined) worker.held.set(run_id, executing);
    const how = await executing;
    if (held === undefined) worker.held.delete(run_id);
    rest(false);
    worker.working -= 1;
    this.#clock.at('world', latency, () => {
      if (job.token === token && this.#jobs.get(run_id) === job) this.#jobs.delete(run_id);
      this.#give();
      if (how === 'left')
        this.#clock.at(worker.node, latency, () => void worker.onReleased(run_id).catch(() => undefined));
    });
  }

  /** Renews the leases of a node while it lives and is not paused. */
  #renew(worker: Worker): () => void {
    let stop = (): void => {};
    const renew = (): void => {
      if (this.#hears(worker))
        for (const job of this.#jobs.values()) if (job.worker === worker) job.until = this.#clock.now + this.#lease;
      stop = this.#clock.at(worker.node, this.#lease / 3, renew);
    };
    renew();
    return () => stop();
  }

  #expire(): void {
    for (const job of this.#jobs.values()) {
      if (job.worker === undefined || job.until > this.#clock.now) continue;
      job.worker = undefined;
      job.token += 1;
    }
    this.#give();
  }

  /** A node has died: it takes no more runs, and its leases expire. */
  nodeDied(node: Owner): void {
    for (const worker of this.#workers) if (worker.node === node) worker.paused = true;
  }
}
