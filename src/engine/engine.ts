import type { EventEmitter } from 'eventemitter3';
import type { OpenRuns } from '../core/ports/run-lists.ts';
import { operator } from '../core/principal.ts';
import { Access } from './access.ts';
import { Sync } from './cluster/sync.ts';
import type { EngineEvents } from './engine-events.ts';
import { type EngineLoad, loadOf } from './runs/counts.ts';
import { Executor } from './runs/executor.ts';
import { expireRuns } from './runs/expiry.ts';
import { type EngineOptions, type Services, servicesOf } from './services.ts';
import { ReadyCheck } from './store/ready-check.ts';
import { PeriodicTask } from './time/periodic.ts';
import type { Webhooks } from './webhooks/webhooks.ts';

/** Milliseconds for which a check of notifications counts, after it has passed and after it has failed. It opens connections. */
const notificationCheckTimes = [30_000, 5_000] as const;

/** The lifetime of an engine, and what its operator may do: the server itself, and code in this process. */
export class Engine extends Access {
  readonly #services: Services;
  readonly #executor: Executor;
  readonly #sync: Sync;
  readonly #tasks: readonly PeriodicTask[];
  readonly #writeCheck: ReadyCheck;
  readonly #notificationCheck: ReadyCheck;
  readonly #worker: boolean;
  readonly #onFailure: (error: unknown) => void;
  /** Resolves when all runs that were parked before the start are tried again. */
  #retried: Promise<void> | undefined;
  /** Runs that the last sweep left although they are due. */
  #leftDue = 0;
  #stopping = false;

  constructor(options: EngineOptions) {
    const services = servicesOf(options);
    super(services, operator);
    const { dispatcher, commits, executions, queue, retention } = services;
    const { requestTimeout, sweepInterval, pollInterval } = executions.limits;
    this.#services = services;
    this.#worker = options.worker ?? true;
    this.#onFailure = options.onFailure;
    this.#writeCheck = new ReadyCheck(() => options.store.commit([]), requestTimeout);
    const check = async (): Promise<void> => options.store.checkNotifications?.();
    this.#notificationCheck = new ReadyCheck(check, requestTimeout, notificationCheckTimes);
    commits.events.on('committed', () => this.#writeCheck.onPassed());
    this.#executor = new Executor(services);
    this.#sync = new Sync(services, this.#executor, options.onFailure);
    const periodic = (period: number, work: () => Promise<void>) => new PeriodicTask(period, work, options.onFailure);
    const sweeps: PeriodicTask = periodic(sweepInterval, () =>
      retention.sweep(Date.parse(executions.now()), () => sweeps.running),
    );
    this.#tasks = [
      periodic(sweepInterval, () => this.#expireAndRetry()),
      periodic(dispatcher.shared ? pollInterval : sweepInterval, () => queue.check()),
      sweeps,
    ];
  }

  /** Connects, and starts to execute runs, first those that an earlier process left unfinished. */
  async start(): Promise<void> {
    await this.connect();
    await this.execute();
  }

  /** Connects to the other nodes. Call it before serving requests. Runs that are created from now on are executed. */
  async connect(): Promise<void> {
    if (this.#services.dispatcher.shared) await this.#sync.start();
    // Executes what this process offers, and nothing that an earlier process left.
    else await this.#startDispatcher();
  }

  /** Starts to execute runs, first those that an earlier process left unfinished. May be called again after an error. */
  async execute(): Promise<void> {
    const { dispatcher, executions, readers, webhooks } = this.#services;
    const started = new Date().toISOString();
    if (dispatcher.shared) await this.#startDispatcher();
    else await this.#executor.recover((row) => readers.recover(row, executions.limits.lease));
    if (this.#stopping) return;
    for (const task of this.#tasks) task.start();
    if (this.#worker) this.#retried = this.#executor.retryParked(started).catch(this.#onFailure);
    webhooks.start();
  }

  async #startDispatcher(): Promise<void> {
    if (this.#worker) await this.#services.dispatcher.start(this.#executor.execute, this.#executor.withoutSlot);
  }

  async #expireAndRetry(): Promise<void> {
    this.#leftDue = await expireRuns(this.#services, this.#leftDue);
    this.#services.offers.repeat();
    this.#executor.suspects.check();
    this.#executor.reportReentries();
  }

  /** Resolves if requests can be served: the store can be read and takes writes, and its notifications arrive. @throws RivuletError `store_unavailable` */
  async ready(): Promise<void> {
    const { commits, store } = this.#services;
    commits.checkAvailable();
    // A commit that is under way shows whether the store takes writes.
    await Promise.all([
      store.due('', 1),
      commits.busy ? undefined : this.#writeCheck.passes(),
      this.#notificationCheck.passes(),
    ]);
  }

  /** Adds a listener; returns a function that removes it. */
  on<Name extends keyof EngineEvents>(
    name: Name,
    listener: EventEmitter.EventListener<EngineEvents, Name>,
  ): () => void {
    const { events } = this.#services;
    events.on(name, listener);
    return () => void events.off(name, listener);
  }

  /** See `loadOf`. */
  get load(): EngineLoad {
    const { commits, active, counts } = this.#services;
    return loadOf(commits, active, counts);
  }

  get webhooks(): Webhooks {
    return this.#services.webhooks;
  }

  /** The runs of the store that are not final, of an owner or of all, by status. @throws RivuletError `store_unavailable` */
  openRuns(owner?: string): Promise<OpenRuns[]> {
    return this.#services.store.openRuns(owner);
  }

  /** Stops all runs and ends all streams; the store stays open. See `ActiveRuns.stop`. */
  async stop(): Promise<void> {
    const { dispatcher, active, readers, webhooks, changes, executions } = this.#services;
    this.#stopping = true;
    const tasks = this.#tasks.map((task) => task.stop());
    await Promise.all([...tasks, dispatcher.pause(), readers.close()]);
    this.#executor.suspects.close();
    await active.stop();
    await this.#retried;
    await webhooks.stop();
    await changes.stop();
    await this.#sync.stop();
    await dispatcher.close();
    await executions.traces?.flush();
  }
}
