import { type BackendFactory, type IQueueBackend, Queue, WaitingError } from 'bullmq';
import type { Dispatcher, Execute, Released } from '../../core/dispatcher.ts';
import { within } from '../../core/timing.ts';
import { type RunJob, RunWorker } from './run-worker.ts';
import { seldom } from './seldom.ts';
import { SlotLease } from './slot-lease.ts';

/** Where a queue is kept, and how it is reached. */
export interface QueuePlace<B extends IQueueBackend, C> {
  readonly backend: BackendFactory<B, C>;
  readonly name: string;
  /** Of Redis' keys. */
  readonly prefix?: string;
  /** Connections that fail as soon as the server is away. */
  readonly offering: C;
  /** Connections that wait until it is back. */
  readonly taking: C;
  /** Seconds after which a process without jobs looks for some though nobody has told it of any. */
  readonly look: number;
}

export interface BullOptions {
  /** How many runs this process executes at once; those that rest do not count. */
  readonly slots: number;
  /** Milliseconds for which a run stays in the hands of a process that does not say that it lives. */
  readonly lease: number;
  /** Told of errors of the connections: at most one in ten seconds. */
  readonly onError: (error: unknown) => void;
}

/** Milliseconds in which the server has to answer an offer, and at the start. */
const answerTimeout = 5_000;
/** At the end there are two such waits. */
const lastPatience = 2_500;

/** A run has one job at most: it is named after the run, and removed when it is over. */
const jobOf = (run_id: string) => ({
  name: 'run',
  data: {},
  opts: { jobId: run_id, removeOnComplete: true, removeOnFail: true },
});

/** How many events of its own the queue keeps; nobody reads them. */
const events = { events: { maxLen: 1 } };

/**
 * Runs go to the processes through a queue of BullMQ, beside the store on the same server. A run in somebody's hands is
 * an active job, and its lock is the lease: a process that dies loses it, and the queue gives the job to another.
 * It may start twice for all that, where a server was away for longer than a lease: the store refuses one of the two.
 */
export class BullDispatcher<B extends IQueueBackend, C> implements Dispatcher {
  readonly shared = true;
  readonly #place: QueuePlace<B, C>;
  readonly #options: BullOptions;
  readonly #failed: (error: unknown) => void;
  readonly #queue: Queue<unknown, void, string, unknown, void, string, B, C>;
  readonly #held = new Map<string, Promise<void>>();
  readonly #settling = new Set<Promise<void>>();
  /** Jobs that were handed back and not executed. */
  readonly #returned = new WeakSet<RunJob>();
  readonly #wanted: string[] = [];
  #offering: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #worker: RunWorker<B, C> | undefined;
  #paused = false;
  #closing: Promise<void> | undefined;

  private constructor(place: QueuePlace<B, C>, options: BullOptions) {
    this.#place = place;
    this.#options = options;
    this.#failed = seldom(options.onError);
    const { prefix, offering: connection } = place;
    this.#queue = new Queue(place.name, { ...(prefix && { prefix }), connection, streams: events }, place.backend);
    this.#queue.on('error', this.#failed);
  }

  /** @throws Error where the server does not answer */
  static async open<B extends IQueueBackend, C>(
    place: QueuePlace<B, C>,
    options: BullOptions,
  ): Promise<BullDispatcher<B, C>> {
    const dispatcher = new BullDispatcher(place, options);
    const queue = dispatcher.#queue;
    // The client of Redis would try for ever, and tells why in events only.
    const refused = new Promise<never>((_, reject) => queue.once('error', reject));
    try {
      await within(answerTimeout, Promise.race([queue.waitUntilReady(), refused]));
    } catch (error) {
      await dispatcher.close();
      throw error;
    }
    return dispatcher;
  }

  /** What comes while an offer is under way goes with the next one, so that a burst of runs takes few of them. */
  async offer(run_ids: readonly string[]): Promise<void> {
    this.#wanted.push(...run_ids);
    this.#next ??= this.#offering.then(() => this.#offerAll());
    await this.#next;
  }

  async start(execute: Execute, settled: Released): Promise<void> {
    const { slots, lease } = this.#options;
    const { name, prefix, taking: connection, backend, look } = this.#place;
    const take = (job: RunJob, token?: string): Promise<void> => this.#take(worker, execute, job, token);
    const options = {
      ...(prefix && { prefix }),
      connection,
      autorun: false,
      concurrency: slots,
      lockDuration: lease,
      stalledInterval: lease / 2,
      // How often a run may be re-entered is the engine's decision.
      maxStalledCount: 1_000_000_000,
      drainDelay: look,
      runRetryDelay: 250,
    };
    const worker = new RunWorker<B, C>(name, take, options, backend);
    worker.on('error', this.#failed);
    worker.whenGone((job) => {
      if (!this.#returned.has(job)) this.#settle(job.id ?? '', settled);
    });
    this.#worker = worker;
    await within(answerTimeout, worker.waitUntilReady());
    worker.run().catch(this.#failed);
  }

  async pause(): Promise<void> {
    this.#paused = true;
    await this.#worker?.leave();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (!this.#paused) await this.pause();
    await Promise.allSettled(this.#held.values());
    const worker = this.#worker;
    // Where the server is away, the jobs are left to others, who are given them when the leases have ended.
    if (worker !== undefined) await within(lastPatience, this.#given(worker)).catch(this.#failed);
    const closing = [this.#queue.backend.close(true), worker?.close(true)];
    await within(lastPatience, Promise.all(closing)).catch(this.#failed);
  }

  async #given(worker: RunWorker<B, C>): Promise<void> {
    await worker.over();
    await Promise.allSettled(this.#settling);
  }

  async #take(worker: RunWorker<B, C>, execute: Execute, job: RunJob, token?: string): Promise<void> {
    // What was asked for before the pause may come after it.
    if (this.#paused) {
      this.#returned.add(job);
      await job.moveToWait(token);
      throw new WaitingError();
    }
    const { id = '' } = job;
    const lease = new SlotLease(() => worker.lend());
    const held = this.#held.get(id);
    // It was given to us again, because its lease has ended while the server was away: this job is the lease now.
    if (held !== undefined) lease.rest();
    const executing = held ?? execute(id, lease);
    if (held === undefined) this.#held.set(id, executing);
    try {
      await executing;
    } finally {
      if (held === undefined) this.#held.delete(id);
      lease.end();
    }
  }

  #offerAll(): Promise<void> {
    this.#next = undefined;
    const jobs = this.#wanted.splice(0).map(jobOf);
    const offering = within(answerTimeout, this.#queue.addBulk(jobs)).then(() => undefined);
    this.#offering = offering.catch(() => undefined); // whoever waits for it hears of it
    return offering;
  }

  #settle(run_id: string, settled: Released): void {
    const settling = settled(run_id)
      .catch(this.#failed)
      .finally(() => this.#settling.delete(settling));
    this.#settling.add(settling);
  }
}
