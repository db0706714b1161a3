import { type BackendFactory, type IQueueBackend, Queue, WaitingError } from 'bullmq';
import type { Dispatcher, Execute, Lease, Released } from '../../core/dispatcher.ts';
import { reasonOf } from '../../core/store-url.ts';
import { within } from '../../core/timing.ts';
import { type RunJob, RunWorker } from './run-worker.ts';

/** The location of a queue, and how to connect to it. */
export interface QueueLocation<B extends IQueueBackend, C> {
  readonly backend: BackendFactory<B, C>;
  readonly name: string;
  /** Prefix of the keys in Redis. */
  readonly prefix?: string;
  /** To offer runs: fails as soon as the server is unavailable. */
  readonly offerConnection: C;
  /** To take jobs: waits until the server is available again. */
  readonly workConnection: C;
  /** Seconds after which a node without jobs polls for some, in case a notification was lost. */
  readonly pollInterval: number;
  /** See `Dispatcher.check`. */
  readonly check?: () => Promise<void>;
}

export interface BullOptions {
  /** Runs that this process executes at once. Awaiting runs do not count. */
  readonly slots: number;
  /** Milliseconds for which a node owns a run without renewing its lease. */
  readonly lease: number;
  /** Called with errors of the connections, at most once in ten seconds. */
  readonly onError: (error: unknown) => void;
}

/** Milliseconds in which the server has to answer an offer, and a new connection. */
const answerTimeout = 5_000;
/** Milliseconds of each of the two waits for the server in `close`. */
const closeTimeout = 2_500;

/** Milliseconds in which at most one error is reported: most repeat that the server is unavailable. */
const errorInterval = 10_000;

/**
 * The job of a run. Its id is that of the run, so that a run has one job at most. BullMQ removes the job at its end: it
 * would ignore later offers of a run whose job it keeps.
 */
const jobOf = (run_id: string) => ({
  name: 'run',
  data: {},
  opts: { jobId: run_id, removeOnComplete: true, removeOnFail: true },
});

/** BullMQ writes events to a stream, which Rivulet does not read. This keeps the stream short. */
const streams = { events: { maxLen: 1 } };

/**
 * Distributes runs among nodes through a queue of BullMQ, on the same server as the store. The run of a node is an
 * active job, and the lock of the job is the lease: a node that dies loses it, and the queue gives the job to another
 * node. A run may start on two nodes after the server was unavailable for longer than a lease. The store then fences
 * one.
 */
export class BullDispatcher<B extends IQueueBackend, C> implements Dispatcher {
  readonly shared = true;
  readonly #location: QueueLocation<B, C>;
  readonly #options: BullOptions;
  readonly #onError: (error: unknown) => void;
  readonly #queue: Queue<unknown, void, string, unknown, void, string, B, C>;
  readonly #executing = new Map<string, ReturnType<Execute>>();
  readonly #releaseReports = new Set<Promise<void>>();
  /** Jobs whose runs need no look when they leave: they have ended, or were returned to the queue and not executed. */
  readonly #done = new WeakSet<RunJob>();
  readonly #pendingOffers: string[] = [];
  #offerInProgress: Promise<void> = Promise.resolve();
  #nextOffer: Promise<void> | undefined;
  #worker: RunWorker<B, C> | undefined;
  #paused = false;
  #closing: Promise<void> | undefined;

  private constructor(location: QueueLocation<B, C>, options: BullOptions) {
    this.#location = location;
    this.#options = options;
    this.#onError = rateLimited(options.onError);
    const { prefix, offerConnection: connection } = location;
    this.#queue = new Queue(location.name, { ...(prefix && { prefix }), connection, streams }, location.backend);
    this.#queue.on('error', this.#onError);
  }

  /** @throws Error where the server does not answer */
  static async open<B extends IQueueBackend, C>(
    location: QueueLocation<B, C>,
    options: BullOptions,
  ): Promise<BullDispatcher<B, C>> {
    const dispatcher = new BullDispatcher(location, options);
    const queue = dispatcher.#queue;
    // The Redis client would retry for ever, and reports errors with events only.
    const connectionFailed = new Promise<never>((_, reject) => queue.once('error', reject));
    try {
      await within(answerTimeout, Promise.race([queue.waitUntilReady(), connectionFailed]));
    } catch (error) {
      await dispatcher.close();
      throw error;
    }
    return dispatcher;
  }

  /** Runs that are offered during a request go with the next one, so that a burst of runs takes few requests. */
  async offer(run_ids: readonly string[]): Promise<void> {
    this.#pendingOffers.push(...run_ids);
    this.#nextOffer ??= this.#offerInProgress.then(() => this.#offerAll());
    await this.#nextOffer;
  }

  async start(execute: Execute, onReleased: Released): Promise<void> {
    const { slots, lease } = this.#options;
    const { name, prefix, workConnection: connection, backend, pollInterval } = this.#location;
    const processJob = (job: RunJob, token?: string): Promise<void> => this.#process(worker, execute, job, token);
    const options = {
      ...(prefix && { prefix }),
      connection,
      autorun: false,
      concurrency: slots,
      lockDuration: lease,
      // The lease outlives three renewals that fail, and a fourth one that is late.
      lockRenewTime: lease / 6,
      stalledInterval: lease / 2,
      // The engine limits how often a run is re-entered.
      maxStalledCount: 1_000_000_000,
      drainDelay: pollInterval,
      runRetryDelay: 250,
    };
    const worker = new RunWorker<B, C>(name, processJob, options, backend);
    worker.on('error', this.#onError);
    worker.onReleased((job) => {
      if (!this.#done.has(job)) this.#reportRelease(job.id ?? '', onReleased);
    });
    this.#worker = worker;
    try {
      await within(
        answerTimeout,
        worker.waitUntilReady(),
        (cause) => new Error(`the queue beside the store cannot be opened: ${reasonOf(cause)}`, { cause }),
      );
    } catch (error) {
      // The caller may start another one.
      await within(closeTimeout, worker.close(true)).catch(this.#onError);
      throw error;
    }
    worker.run().catch(this.#onError);
  }

  async check(): Promise<void> {
    await this.#location.check?.();
  }

  async pause(): Promise<void> {
    this.#paused = true;
    await this.#worker?.stopTaking();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (!this.#paused) await this.pause();
    await Promise.allSettled(this.#executing.values());
    const worker = this.#worker;
    // Where the server is unavailable, the queue gives the jobs to other nodes when the leases end.
    if (worker !== undefined) await within(closeTimeout, this.#released(worker)).catch(this.#onError);
    const closing = [this.#queue.backend.close(true), worker?.close(true)];
    await within(closeTimeout, Promise.all(closing)).catch(this.#onError);
  }

  async #released(worker: RunWorker<B, C>): Promise<void> {
    await worker.idle();
    await Promise.allSettled(this.#releaseReports);
  }

  async #process(worker: RunWorker<B, C>, execute: Execute, job: RunJob, token?: string): Promise<void> {
    // A job that was requested before the pause may arrive after it.
    if (this.#paused) {
      this.#done.add(job);
      await job.moveToWait(token);
      throw new WaitingError();
    }
    const { id = '' } = job;
    const lease = new SlotLease(() => worker.addSlot());
    const running = this.#executing.get(id);
    // This node got its own run again, because the lease ended while the server was unavailable. This job is the new
    // lease.
    if (running !== undefined) lease.rest();
    const executing = running ?? execute(id, lease);
    if (running === undefined) this.#executing.set(id, executing);
    try {
      if ((await executing) === 'ended') this.#done.add(job);
    } finally {
      if (running === undefined) this.#executing.delete(id);
      lease.end();
    }
  }

  #offerAll(): Promise<void> {
    this.#nextOffer = undefined;
    const jobs = this.#pendingOffers.splice(0).map(jobOf);
    const offering = within(answerTimeout, this.#queue.addBulk(jobs)).then(() => undefined);
    this.#offerInProgress = offering.catch(() => undefined); // the caller of `offer` gets the error
    return offering;
  }

  #reportRelease(run_id: string, onReleased: Released): void {
    const report = onReleased(run_id)
      .catch(this.#onError)
      .finally(() => this.#releaseReports.delete(report));
    this.#releaseReports.add(report);
  }
}

/** The slot of a run. Other runs may use it while this run awaits. */
class SlotLease implements Lease {
  readonly #addSlot: () => () => void;
  #removeSlot: (() => void) | undefined;
  #ended = false;

  constructor(addSlot: () => () => void) {
    this.#addSlot = addSlot;
  }

  rest(): void {
    if (!this.#ended) this.#removeSlot ??= this.#addSlot();
  }

  wake(): void {
    this.#removeSlot?.();
    this.#removeSlot = undefined;
  }

  /** The execution here has ended, also where the run awaits. */
  end(): void {
    this.wake();
    this.#ended = true;
  }
}

/** Limits the rate at which errors are reported. */
function rateLimited(report: (error: unknown) => void): (error: unknown) => void {
  let next = 0;
  return (error) => {
    const now = performance.now();
    if (now < next) return;
    next = now + errorInterval;
    report(error);
  };
}
