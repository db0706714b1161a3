import { fail } from '../core/errors.ts';
import type { Principal } from '../core/principal.ts';
import { type AgentRequest, messagesOf, requestOf } from '../core/request.ts';
import { isFinal } from '../core/run-state.ts';
import type { Key, OpenRuns, Resource, RunRow, StatusFilter, StatusPosition, Store } from '../core/store.ts';
import type { AgentManifest } from '../schema/agent.ts';
import type { ErasedData, RunCreateRequest } from '../schema/api.ts';
import type { AwaitResumeInput } from '../schema/run.ts';
import type { Session } from '../schema/session.ts';
import type { ChangeReader, ChangesOptions } from './changes/change-reader.ts';
import { RunChanges } from './changes/run-changes.ts';
import { Sync } from './cluster/sync.ts';
import { defaultLimits, type RunTtlByOwner } from './limits.ts';
import { isCheckpoint } from './log/checkpoint.ts';
import type { Cursor, CursorOptions } from './log/cursor.ts';
import { diagnosticIn, isDiagnosticLine } from './log/diagnostic-lines.ts';
import { RunStream } from './log/run-stream.ts';
import { summaryOf } from './log/stored-run.ts';
import type { EngineObserver } from './observers.ts';
import { type EngineOptions, servicesOf } from './parts.ts';
import { PeriodicTask } from './periodic.ts';
import { ReadyCheck } from './ready-check.ts';
import { manifestsOf } from './registry.ts';
import { runAgain } from './runs/again.ts';
import { cancelRun } from './runs/cancel.ts';
import { ConnectedReaders } from './runs/connected-readers.ts';
import { type AcceptedRun, createRun, type RunOptions } from './runs/create.ts';
import { dropRuns } from './runs/drop.ts';
import { eraseOwner } from './runs/erase.ts';
import { Executor } from './runs/executor.ts';
import { expireRuns, sweeper } from './runs/expiry.ts';
import { type EngineLoad, measureLoad } from './runs/load.ts';
import { ReaderNodes } from './runs/reader-nodes.ts';
import { resumeRun } from './runs/resume.ts';
import { retryRun } from './runs/retry.ts';
import type { RunServices } from './runs/run-services.ts';
import { Sessions } from './sessions.ts';
import { storeForRequests } from './store-access.ts';
import { type IsVisible, type RunTest, type VisibleRuns, visibleRuns } from './visible-runs.ts';
import { Webhooks } from './webhooks/webhooks.ts';

export type { EngineOptions } from './parts.ts';

/** Milliseconds for which a check of the queue counts, which opens connections, where it has passed and has failed. */
const queueCheckTimes = [30_000, 5_000] as const;

/** Characters of JSON after which a page of runs ends: the questions of runs may be long. */
const maxPageChars = 1024 * 1024;

/** As `StatusFilter`, with one agent or any that the caller may see. */
export type AgentStatusFilter = Omit<StatusFilter, 'agent_names'> & Pick<VisibleRuns, 'agent_name' | 'isVisible'>;

/** A page of runs by the time of their status. */
export interface RunsByStatusTime {
  readonly runs: string[];
  readonly total: number;
  /** Where the next page begins; absent on the last one. */
  readonly next?: StatusPosition;
}

/**
 * The interface to runs, sessions and agents for the server and its protocols. The JSON that it returns is durable: no
 * caller sees what the store could still lose.
 */
export class Engine {
  readonly #store: Store;
  readonly #services: RunServices;
  readonly #executor: Executor;
  readonly #sessions: Sessions;
  readonly #connectedReaders: ConnectedReaders;
  readonly #sync: Sync;
  readonly #changes: RunChanges;
  readonly #tasks: readonly PeriodicTask[];
  readonly webhooks: Webhooks;
  readonly #writeCheck: ReadyCheck;
  readonly #queueCheck: ReadyCheck;
  readonly #worker: boolean;
  readonly #onFailure: (error: unknown) => void;
  /** Resolves when all runs that were parked before the start are tried again. */
  #retried: Promise<void> | undefined;
  readonly #runTtlByOwner: RunTtlByOwner;
  #stopping = false;

  constructor(options: EngineOptions) {
    const { dispatcher, fetchResource, publicUrl, onFailure } = options;
    const limits = { ...defaultLimits, ...options.limits };
    this.#store = storeForRequests(options.store, limits.requestTimeout);
    this.#writeCheck = new ReadyCheck(() => options.store.commit([]), limits.requestTimeout);
    this.#queueCheck = new ReadyCheck(async () => dispatcher.check?.(), limits.requestTimeout, queueCheckTimes);
    this.#worker = options.worker ?? true;
    this.#onFailure = onFailure;
    this.#sessions = new Sessions(this.#store, fetchResource, publicUrl, options.logFor);
    this.#changes = new RunChanges(this.#store, {
      limits,
      shared: dispatcher.shared,
      now: () => this.#services.executions.now(),
      onFailure,
    });
    this.#services = servicesOf(options, this.#store, limits, {
      executor: () => this.#executor,
      onCommitted: (writes, outcomes) => {
        this.#writeCheck.onPassed();
        this.#changes.onCommitted(writes, outcomes);
        this.webhooks.onCommitted(writes, outcomes);
      },
      checkWebhook: (url, field) => this.webhooks.check(url, field),
    });
    this.webhooks = new Webhooks(this.#store, options.webhooks, {
      firstPause: limits.webhookRetry,
      offAfter: limits.webhookOffAfter,
      observers: this.#services.observers,
      onFailure,
    });
    this.#executor = new Executor(this.#services);
    // An error means that the run has ended meanwhile.
    this.#connectedReaders = new ConnectedReaders(
      new ReaderNodes(this.#store, limits.lease, dispatcher.shared ? undefined : 'here'),
      (run_id) => void this.cancel(run_id).catch(() => undefined),
    );
    this.#sync = new Sync(this.#services, this.#executor, this.#changes, this.#connectedReaders, onFailure);
    this.#runTtlByOwner = options.runTtlByOwner ?? {};
    const sweep = sweeper(this.#services, this.#runTtlByOwner);
    const sweeps: PeriodicTask = new PeriodicTask(limits.sweepInterval, () => sweep(() => sweeps.running), onFailure);
    this.#tasks = [
      new PeriodicTask(limits.sweepInterval, () => this.#expireAndRetry(), onFailure),
      new PeriodicTask(
        dispatcher.shared ? limits.pollInterval : limits.sweepInterval,
        () => this.#services.queue.check(),
        onFailure,
      ),
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
    const { dispatcher } = this.#services;
    if (dispatcher.shared) await this.#sync.start();
    // It executes what this process offers, and nothing that was there before.
    else await this.#startDispatcher();
  }

  /** Starts to execute runs, first those that an earlier process left unfinished. May be called again after an error. */
  async execute(): Promise<void> {
    const { dispatcher, executions } = this.#services;
    const started = new Date().toISOString();
    const { lease } = executions.limits;
    if (dispatcher.shared) await this.#startDispatcher();
    else await this.#executor.recover((row) => this.#connectedReaders.recover(row, lease));
    if (this.#stopping) return;
    for (const task of this.#tasks) task.start();
    if (this.#worker) this.#retried = this.#executor.retryParked(started).catch(this.#onFailure);
    this.webhooks.start();
  }

  async #startDispatcher(): Promise<void> {
    const { execute, onReleased } = this.#executor;
    if (this.#worker) await this.#services.dispatcher.start(execute, onReleased);
  }

  /** Resolves if requests can be served: the store can be read and takes writes, and its queue works. @throws RivuletError `store_unavailable` */
  async ready(): Promise<void> {
    const { commits } = this.#services;
    commits.checkAvailable();
    // A commit that is under way shows the same as the check would.
    await Promise.all([
      this.#store.due('', 1),
      commits.busy ? undefined : this.#writeCheck.passes(),
      this.#queueCheck.passes(),
    ]);
  }

  /** Returns a function that removes the observer. */
  observe(observer: EngineObserver): () => void {
    return this.#services.observers.add(observer);
  }

  /** See `measureLoad`. */
  get load(): EngineLoad {
    return measureLoad(this.#services);
  }

  /** The runs of the store that are not final, of an owner or of all, by status. @throws RivuletError `store_unavailable` */
  openRuns(owner?: string): Promise<OpenRuns[]> {
    return this.#store.openRuns(owner);
  }

  /** Creates a run and starts it, now or after the earlier runs of its session. See `createRun` for its errors. */
  create(request: RunCreateRequest, options: RunOptions = {}): Promise<AcceptedRun> {
    return createRun(this.#services, request, options);
  }

  /** Accepts the reply to the question of an awaiting run, in memory or not. See `resumeRun` for its errors. */
  resume(run_id: string, input: AwaitResumeInput, options: RunOptions = {}): Promise<AcceptedRun> {
    return resumeRun(this.#services, run_id, input, options);
  }

  /** What a request with an idempotency key has made: its run, and the cursor before the events that it caused. */
  findKey(scope: string, key: string, principal: Principal): Promise<Pick<Key, 'run_id' | 'after'> | undefined> {
    return this.#services.idempotency.find(scope, principal, key);
  }

  /** Cancels a run; returns it as JSON, with the status `cancelling`. See `cancelRun`, also for its errors. */
  cancel(run_id: string, question?: string): Promise<string> {
    return cancelRun(this.#services, run_id, question);
  }

  /** Makes a run that repeats another one up to an event. See `runAgain` for its errors. */
  again(run_id: string, after: number, options: RunOptions = {}): Promise<AcceptedRun> {
    return runAgain(this.#services, run_id, after, options);
  }

  /** Tries a parked run again; returns it as JSON. See `retryRun` for its errors. */
  retry(run_id: string): Promise<string> {
    return retryRun(this.#services, run_id);
  }

  /** The Run as JSON. @throws RivuletError `run_unknown`, `log_removed` */
  run(run_id: string): Promise<string> {
    return this.#services.active.json(run_id);
  }

  /** The Run with its input, as JSON. @throws as `run` */
  async details(run_id: string): Promise<string> {
    const run = await this.run(run_id);
    const input = await this.#store.input(run_id);
    // Removed meanwhile.
    if (input === undefined) throw fail('run_unknown', run_id);
    return `{"input":${JSON.stringify(messagesOf(input))},${run.slice(1)}`;
  }

  /**
   * A page of what a run keeps for the search for a fault, as JSON, oldest first: after so many entries, up to `chars`
   * characters. `next`: how many entries come before the next page, if there is one.
   * @throws RivuletError `run_unknown`
   */
  async diagnostics(run_id: string, after: number, chars: number): Promise<{ diagnostics: string[]; next?: number }> {
    const lines = (await this.#store.journal(run_id)).filter(isDiagnosticLine).slice(after);
    let left = chars;
    const fitting = lines.findIndex((line, index) => {
      left -= line.length;
      return left < 0 && index > 0;
    });
    const page = fitting < 0 ? lines : lines.slice(0, fitting);
    return { diagnostics: page.map(diagnosticIn), ...(fitting >= 0 && { next: after + fitting }) };
  }

  /** What the request of a run said beside its messages. @throws RivuletError `run_unknown` */
  async request(run_id: string): Promise<AgentRequest> {
    const input = await this.#store.input(run_id);
    if (input === undefined) throw fail('run_unknown', run_id);
    return requestOf(input);
  }

  /** The Run as JSON, as of the event with which it began to await. @throws as `run` */
  runAt(run_id: string, event_id: number): Promise<string> {
    return this.#services.active.jsonAt(run_id, event_id);
  }

  /**
   * Runs as JSON without their output, newest first, and the cursor of the next page, if there is one. Each run takes
   * at most one read of one event, however long its log is.
   */
  async runs(
    filter: VisibleRuns,
    before: string | undefined,
    limit: number,
  ): Promise<{ runs: string[]; next?: string }> {
    const { items, readTo } = await visibleRuns(this.#store, filter, before, limit + 1);
    const { runs, last = readTo } = await this.#page(items, limit, () => ({}));
    return { runs, ...(last && { next: last.run_id }) };
  }

  /**
   * Runs of an agent, or of all agents that there are, by the time of their status, newest first: as `runs`, with
   * `status_at`. `total` counts all runs that match, and costs as much as to read an index of them.
   */
  async runsByStatusTime(
    { agent_name, isVisible = () => true, ...rest }: AgentStatusFilter,
    after: StatusPosition | undefined,
    limit: number,
  ): Promise<RunsByStatusTime> {
    const { registry } = this.#services.executions;
    const names = agent_name === undefined ? registry.list().map(({ manifest }) => manifest.name) : [agent_name];
    const agent_names = names.filter(isVisible);
    const filter: StatusFilter = { ...rest, agent_names };
    const [rows, total] = await Promise.all([
      this.#store.runsByStatusTime(filter, after, limit + 1),
      this.#store.countRuns(filter),
    ]);
    const { runs, last } = await this.#page(rows, limit, ({ status_at }) => ({ status_at }));
    return { runs, total, ...(last && { next: { status_at: last.status_at, run_id: last.run_id } }) };
  }

  /** The first rows as JSON, and the last of them, where there are more. A page ends early with the run that makes it large. */
  async #page(
    rows: readonly RunRow[],
    limit: number,
    more: (row: RunRow) => object,
  ): Promise<{ runs: string[]; last: RunRow | undefined }> {
    const runs: string[] = [];
    let chars = 0;
    for (const row of rows.slice(0, limit)) {
      const run = JSON.stringify({ ...(await summaryOf(this.#store, row)), ...more(row) });
      runs.push(run);
      chars += run.length;
      if (chars > maxPageChars) break;
    }
    return { runs, last: runs.length < rows.length ? rows[runs.length - 1] : undefined };
  }

  /**
   * The states of the runs that match a filter, as of now or since a position, then each change. The caller closes the
   * reader. @throws RivuletError `store_unavailable`
   */
  watchRuns(filter: VisibleRuns, options: ChangesOptions): Promise<ChangeReader> {
    return this.#changes.open(filter, options);
  }

  /** Deletes a final run, its log and its messages. @throws RivuletError `run_unknown`, `not_final` */
  async remove(run_id: string): Promise<void> {
    const row = await this.#services.active.row(run_id);
    if (!(await this.#store.remove(run_id))) throw fail('not_final', run_id, row.status);
  }

  /** Deletes runs from the end of a conversation. See `dropRuns`. @throws RivuletError `not_final` */
  drop(run_ids: readonly string[], cancels: boolean): Promise<void> {
    return dropRuns(this.#services, run_ids, cancels);
  }

  /**
   * Deletes a session, by its key, and its runs, which have to be final. Of a session that has other runs as well, a caller
   * deletes the runs that it may see.
   * @throws RivuletError `session_unknown`, `not_final`
   */
  async removeSession(session_key: string, isVisible?: IsVisible): Promise<void> {
    await this.#sessions.describe(session_key, isVisible);
    const { visible, hidden } = await this.#sessions.runsOf(session_key, isVisible);
    if (hidden.size > 0) return this.#removeAll(visible);
    if (await this.#store.removeSession(session_key)) return;
    const [open] = await this.#store.unfinished(session_key, '', 1);
    throw fail('not_final', open?.run_id ?? 'of the session', open?.status ?? 'in-progress');
  }

  async #removeAll(rows: readonly RunRow[]): Promise<void> {
    const open = rows.find(({ status }) => !isFinal(status));
    if (open !== undefined) throw fail('not_final', open.run_id, open.status);
    for (const { run_id } of rows) await this.#store.remove(run_id);
  }

  /** Erases all that an owner has. See `eraseOwner`. @throws RivuletError `not_final` */
  erase(owner: string): Promise<ErasedData> {
    return eraseOwner(this.#services, owner);
  }

  /**
   * The run stream of any run, live or stored: history after a cursor first, then live.
   * @throws RivuletError `run_unknown`, `log_removed`, `cursor_invalid`
   */
  async stream(run_id: string, options: CursorOptions = {}): Promise<RunStream> {
    const { active } = this.#services;
    const source = await active.find(run_id, options.seen ?? options.after);
    return new RunStream(() => active.cursor(source, options));
  }

  /** A cursor on the run stream, for writers that pull. The caller closes it. @throws as `stream` */
  openCursor(run_id: string, options: CursorOptions = {}): Promise<Cursor> {
    return this.#services.active.openCursor(run_id, options);
  }

  /**
   * A client reads a run, whose policy decides what happens when the last client disconnects. See
   * `ConnectedReaders.connect`.
   */
  connectReader({ run_id, on_disconnect }: Cursor): (disconnected: boolean) => void {
    const { active, dispatcher } = this.#services;
    // A run that executes here and is not durable ends with this process, where no other one has the store.
    const isKept = dispatcher.shared || active.local(run_id)?.durable !== false;
    return this.#connectedReaders.connect(run_id, on_disconnect, isKept);
  }

  /** Whether a run that passes executes in this process. */
  executes(run_id: string, isAllowed: RunTest): boolean {
    const execution = this.#services.active.local(run_id);
    return execution !== undefined && isAllowed(execution.log.row);
  }

  /** See `ActiveRuns.check`. */
  check(run_id: string, isAllowed: RunTest): Promise<string> {
    return this.#services.active.check(run_id, isAllowed);
  }

  /** The scopes that an agent asks for; none for an unknown agent. */
  scopesOf(name: string): readonly string[] {
    return this.#services.executions.registry.find(name)?.options.scopes ?? [];
  }

  /** The manifest, with the figures of all runs or of an owner's. @throws RivuletError `agent_unknown` */
  async manifest(name: string, owner?: string): Promise<AgentManifest> {
    const [manifest] = await manifestsOf(this.#store, [this.#services.executions.registry.get(name)], owner);
    if (manifest === undefined) throw fail('agent_unknown', name);
    return manifest;
  }

  /** The manifests of the agents that pass, by name, with the figures of all runs or of an owner's. */
  manifests(
    limit: number,
    offset: number,
    isVisible: IsVisible = () => true,
    owner?: string,
  ): Promise<AgentManifest[]> {
    const agents = this.#services.executions.registry.list().filter(({ manifest }) => isVisible(manifest.name));
    return manifestsOf(this.#store, agents.slice(offset, offset + limit), owner);
  }

  /** The manifest of the agent that is offered as a tool of this name; undefined where there is none. */
  tool(name: string): AgentManifest | undefined {
    return this.#services.executions.registry.findTool(name)?.manifest;
  }

  /** The manifests of all agents, by name, without figures. */
  tools(): AgentManifest[] {
    return this.#services.executions.registry.list().map(({ manifest }) => manifest);
  }

  /** Milliseconds for which an owner's final runs of an agent are kept; Infinity for no limit. */
  keptFor(agent_name: string, owner: string | null): number {
    const { registry, limits } = this.#services.executions;
    const ofOwner = owner === null ? undefined : this.#runTtlByOwner[owner];
    const all = [limits.runTtl || undefined, registry.find(agent_name)?.options.run_ttl, ofOwner];
    return Math.min(...all.filter((time) => time !== undefined));
  }

  /** A session by its key. See `Sessions.describe`. @throws RivuletError `session_unknown` */
  session(session_key: string, isVisible?: IsVisible): Promise<Session> {
    return this.#sessions.describe(session_key, isVisible);
  }

  /** @throws RivuletError `resource_unknown` */
  async resource(resource_id: string, isVisible?: IsVisible): Promise<Resource> {
    const [resource] = await this.#store.resources([resource_id]);
    if (resource === undefined || isCheckpoint(resource) || !(await this.#sessions.shows(resource, isVisible)))
      throw fail('resource_unknown', resource_id);
    return resource;
  }

  /** Stops all runs and ends all streams; the store stays open. See `ActiveRuns.stop`. */
  async stop(): Promise<void> {
    const { dispatcher, active } = this.#services;
    this.#stopping = true;
    const tasks = this.#tasks.map((task) => task.stop());
    await Promise.all([...tasks, dispatcher.pause(), this.#connectedReaders.close()]);
    this.#executor.close();
    await active.stop();
    await this.#retried;
    await this.webhooks.stop();
    await this.#changes.stop();
    await this.#sync.stop();
    await dispatcher.close();
    await this.#services.executions.traces?.flush();
  }

  async #expireAndRetry(): Promise<void> {
    await expireRuns(this.#services);
    await this.#executor.offerAgain();
    this.#executor.checkSuspects();
    this.#executor.reportReentries();
  }
}
