import { type IQueueBackend, type Job, type JobProgress, Worker } from 'bullmq';

export type RunJob = Job<unknown, void, string>;

/** A failed request is made again after so many milliseconds; the back ends would be asked without a pause. */
const retryDelay = 250;

/** Takes jobs, with a number of slots that can be lent. */
export class RunWorker<B extends IQueueBackend, C> extends Worker<unknown, void, string, B, JobProgress, C> {
  #active = 0;
  #gone: ((job: RunJob) => void) | undefined;

  /** Calls back when a job is removed, or could not be. */
  whenGone(gone: (job: RunJob) => void): void {
    this.#gone = gone;
  }

  /** Takes no more jobs; those that it has go on. What was asked for already may come still. */
  async leave(): Promise<void> {
    await this.pause(true);
    // It would wait on, and be the one who is told of the next job. Not awaited to be closed: it may never be.
    await this.backend.disconnectBlocking(false);
  }

  /** Resolves after `leave`, when nothing comes any more and all jobs are removed, or could not be. */
  async over(): Promise<void> {
    await this.mainLoopRunning;
  }

  /** One slot more until what is returned is called: its job does not work. */
  lend(): () => void {
    const full = this.#active >= this.concurrency;
    this.concurrency += 1;
    if (full) this.#nudge();
    let lent = true;
    return () => {
      if (lent) this.concurrency -= 1;
      lent = false;
    };
  }

  override async processJob(
    job: RunJob,
    token: string,
    fetchNext?: () => boolean,
    // biome-ignore lint/suspicious/noConfusingVoidType: it is the worker's own
  ): Promise<void | RunJob> {
    this.#active += 1;
    try {
      return await super.processJob(job, token, fetchNext);
    } finally {
      this.#active -= 1;
      this.#gone?.(job);
    }
  }

  protected override async moveToActive(token: string, name?: string): Promise<RunJob> {
    try {
      return await super.moveToActive(token, name);
    } catch (error) {
      if (!this.closing) await this.delay(retryDelay);
      throw error;
    }
  }

  /** Also what looks for jobs of processes that have died goes on soon. */
  protected override checkConnectionError<T>(request: () => Promise<T>): Promise<T | undefined> {
    return super.checkConnectionError(request, retryDelay);
  }

  /**
   * With all slots taken, the worker waits for one of its jobs to end, and does not see that there is room now. What
   * wakes it is to be resumed. Both calls do their work before they return, so nothing happens in between.
   */
  #nudge(): void {
    if (this.closing || this.isPaused()) return;
    this.pause(true).catch((error) => this.emit('error', error));
    this.resume().catch((error) => this.emit('error', error));
  }
}
