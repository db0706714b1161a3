import {
  type IQueueBackend,
  type Job,
  type JobProgress,
  LockManager,
  type LockManagerWorkerContext,
  Worker,
} from 'bullmq';

export type RunJob = Job<unknown, void, string>;

/** Milliseconds before a failed request is repeated. Without it, BullMQ would retry in a busy loop. */
const retryDelay = 250;

/**
 * Renews all leases at an interval. That of BullMQ compares times of the node's clock. Where the clock is set back, it
 * would renew none until the clock has caught up.
 */
class Leases extends LockManager {
  override start(): void {
    clearTimeout(this.lockRenewalTimer);
    if (!this.closed) this.lockRenewalTimer = setTimeout(() => void this.#renew(), this.opts.lockRenewTime);
  }

  async #renew(): Promise<void> {
    const run_ids = this.getTrackedJobIds();
    // Never rejects: the worker reports the errors.
    if (run_ids.length > 0) await this.extendLocks(run_ids);
    this.start();
  }
}

/** A worker of BullMQ whose number of slots changes while runs await. */
export class RunWorker<B extends IQueueBackend, C> extends Worker<unknown, void, string, B, JobProgress, C> {
  #active = 0;
  #onReleased: ((job: RunJob) => void) | undefined;

  /** Calls back when a job was removed from the queue, or could not be. */
  onReleased(callback: (job: RunJob) => void): void {
    this.#onReleased = callback;
  }

  /** Takes no more jobs, and continues the ones that it has. A job that was requested before may still arrive. */
  async stopTaking(): Promise<void> {
    await this.pause(true);
    // Otherwise this connection would go on waiting and be given the next job. Closing it may never end, so no wait.
    await this.backend.disconnectBlocking(false);
  }

  /** After `stopTaking`. Resolves when no job can arrive and each job was removed, or could not be. */
  async idle(): Promise<void> {
    await this.mainLoopRunning;
  }

  /** Adds a slot, because a run awaits. Returns a function that removes it again. */
  addSlot(): () => void {
    const full = this.#active >= this.concurrency;
    this.concurrency += 1;
    if (full) this.#recheckSlots();
    let added = true;
    return () => {
      if (added) this.concurrency -= 1;
      added = false;
    };
  }

  override async processJob(
    job: RunJob,
    token: string,
    fetchNext?: () => boolean,
    // biome-ignore lint/suspicious/noConfusingVoidType: the type of the overridden method
  ): Promise<void | RunJob> {
    this.#active += 1;
    try {
      return await super.processJob(job, token, fetchNext);
    } finally {
      this.#active -= 1;
      this.#onReleased?.(job);
    }
  }

  /**
   * Seconds. After an error of the connection, BullMQ waits for a job for this long instead of `drainDelay`. Its default
   * with PostgreSQL is an hour, in which a job whose notification was lost would wait as well.
   */
  override get maximumBlockTimeout(): number {
    return Math.min(super.maximumBlockTimeout, this.opts.drainDelay ?? Number.POSITIVE_INFINITY);
  }

  protected override createLockManager(): void {
    const { lockDuration = 30_000, lockRenewTime = lockDuration / 6 } = this.opts;
    const worker: LockManagerWorkerContext = {
      name: this.name,
      extendJobLocks: (ids, tokens, duration) => this.extendJobLocks(ids, tokens, duration),
      emit: (event, error) => event === 'error' && this.emit(event, error),
      trace: (_kind, _operation, _destination, work) => work(),
    };
    this.lockManager = new Leases(worker, { lockRenewTime, lockDuration, workerId: this.id });
  }

  /** Returns the ids of the jobs whose locks are lost. A job that ended during the request has no lock to lose. */
  override async extendJobLocks(ids: string[], tokens: string[], duration: number): Promise<string[]> {
    const refused = await super.extendJobLocks(ids, tokens, duration);
    const held = new Set(this.lockManager.getTrackedJobIds());
    return refused.filter((id) => held.has(id));
  }

  protected override async moveToActive(token: string, name?: string): Promise<RunJob> {
    try {
      return await super.moveToActive(token, name);
    } catch (error) {
      if (!this.closing) await this.delay(retryDelay);
      throw error;
    }
  }

  /** Repeats failed checks for the jobs of dead processes after the same delay. */
  protected override checkConnectionError<T>(request: () => Promise<T>): Promise<T | undefined> {
    return super.checkConnectionError(request, retryDelay);
  }

  /**
   * With all slots taken, the worker waits for one of its jobs to end, and does not notice a new slot. Resuming wakes
   * it. Both calls take effect before they return, so nothing happens between them.
   */
  #recheckSlots(): void {
    if (this.closing || this.isPaused()) return;
    this.pause(true).catch((error) => this.emit('error', error));
    this.resume().catch((error) => this.emit('error', error));
  }
}
