import type { AgentLog } from '../core/agent.ts';
import type { Dispatcher } from '../core/dispatcher.ts';
import { fail } from '../core/errors.ts';
import { isFinal } from '../core/status.ts';
import type { Resource, RunFilter, RunRow, Store } from '../core/store.ts';
import { createToEvents } from '../core/to-events.ts';
import type { AgentManifest } from '../schema/agent.ts';
import type { RunCreateRequest } from '../schema/api.ts';
import type { AwaitResumeInput } from '../schema/run.ts';
import type { Session } from '../schema/session.ts';
import { LeftReplies } from './cluster/reply-mailbox.ts';
import { Neighbours } from './cluster/sync.ts';
import type { Services } from './execution/services.ts';
import { withStatus } from './figures.ts';
import { defaultLimits, type Limits } from './limits.ts';
import { Cursor, type CursorOptions } from './log/cursor.ts';
import { Commits } from './log/group-commit.ts';
import { Pages } from './log/page-cache.ts';
import { endStored, foldRow, seize } from './log/stored-run.ts';
import type { Registry } from './registry.ts';
import { LiveRuns } from './runs/active-runs.ts';
import type { Begun, Wishes } from './runs/begun.ts';
import { Admission } from './runs/create.ts';
import { Presence } from './runs/disconnect-policy.ts';
import { Executor } from './runs/executor.ts';
import { Sweeper } from './runs/expiry.ts';
import { Idempotency } from './runs/idempotency.ts';
import { Revival } from './runs/recover.ts';
import { Resumption } from './runs/resume.ts';
import { SessionTurns } from './runs/session-queue.ts';
import { type FetchResource, Sessions } from './sessions.ts';
import { patient, reachable } from './store-access.ts';

export interface EngineOptions {
  readonly registry: Registry;
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  /** Whether this process executes runs. Where it does not, others have to. Default true. */
  readonly works?: boolean;
  readonly fetchResource: FetchResource;
  readonly publicUrl: () => string;
  readonly logFor: (run_id: string) => AgentLog;
  /** Told of failures of the store that no request is waiting for. */
  readonly onFailure: (error: unknown) => void;
  readonly limits?: Partial<Limits>;
}

/**
 * The only door to runs. Whatever it answers as JSON is durable: no caller is told
 * what the store could still lose.
 */
export class Engine {
  readonly #store: Store;
  readonly #commits: Commits;
  readonly #pages: Pages;
  readonly #sessions: Sessions;
  readonly #services: Services;
  readonly #turns: SessionTurns;
  readonly #live: LiveRuns;
  readonly #sweeper: Sweeper;
  readonly #admission: Admission;
  readonly #resumption: Resumption;
  readonly #presence: Presence;
  readonly #executor: Executor;
  readonly #neighbours: Neighbours;
  readonly #works: boolean;

  constructor({
    registry,
    store,
    dispatcher,
    works,
    fetchResource,
    publicUrl,
    logFor,
    onFailure,
    limits,
  }: EngineOptions) {
    const now = clock();
    const all = { ...defaultLimits, ...limits };
    // Whoever asks for runs has patience; whoever asks for people has not.
    const near = dispatcher.shared ? reachable(store, all.patience) : store;
    const cancel = (run_id: string): Promise<string> => this.cancel(run_id);
    const commits = new Commits(store, all.patience);
    const sessions = new Sessions(dispatcher.shared ? patient(store) : store, fetchResource, publicUrl);
    const services = { registry, dispatcher, sessions, toEvents: createToEvents(now), limits: all, now, logFor };
    const turns = new SessionTurns(near, cancel);
    const live = new LiveRuns(near, commits, services, turns);
    const idempotency = new Idempotency(near, all.keepKeys);
    const executor = new Executor(near, live, turns, new Revival(near, commits, services, live), services);
    this.#commits = commits;
    this.#pages = new Pages(near);
    const left = new LeftReplies(near, this.#pages, live, all.patience);
    this.#store = near;
    this.#works = works ?? true;
    this.#sessions = dispatcher.shared ? new Sessions(near, fetchResource, publicUrl) : sessions;
    this.#services = services;
    this.#turns = turns;
    this.#live = live;
    this.#executor = executor;
    this.#sweeper = new Sweeper(near, live, all, (row) => this.#endedStored(row), onFailure);
    this.#neighbours = new Neighbours({ store: near, live, turns, executor, left, limits: all, failed: onFailure });
    this.#admission = new Admission(commits, services, turns, live, executor, idempotency, cancel);
    this.#resumption = new Resumption(near, commits, services, live, executor, left, idempotency);
    // A run that is over meanwhile needs no cancelling.
    this.#presence = new Presence((run_id) => void cancel(run_id).catch(() => undefined));
  }

  /** Takes its share in the work, beginning with what an earlier process left; call it before serving. */
  async start(): Promise<void> {
    const { dispatcher } = this.#services;
    if (dispatcher.shared) await this.#neighbours.start();
    if (this.#works) await dispatcher.start(this.#executor.execute, this.#executor.settled);
    if (!dispatcher.shared) await this.#executor.recover();
    this.#sweeper.start();
  }

  /** Resolves where requests can be served. @throws RivuletError `store_away` */
  async ready(): Promise<void> {
    this.#commits.check();
    await this.#store.due('', 1);
  }

  /** Makes a run and starts it, now or when its turn comes. See `Admission.create` for what it throws. */
  create(request: RunCreateRequest, wishes: Wishes = {}): Promise<Begun> {
    return this.#admission.create(request, wishes);
  }

  /** Answers what an awaiting run asked, whether it is in memory or not. See `Resumption.resume` for what it throws. */
  resume(run_id: string, input: AwaitResumeInput, wishes: Wishes = {}): Promise<Begun> {
    return this.#resumption.resume(run_id, input, wishes);
  }

  /**
   * Cancels a run; answers it as `cancelling`.
   * @throws RivuletError `run_unknown`, `already_final`
   */
  async cancel(run_id: string): Promise<string> {
    const execution = await this.#live.get(run_id);
    if (execution === undefined) return this.#cancelElsewhere(run_id);
    this.#commits.check();
    execution.cancel();
    const run = JSON.stringify(execution.run);
    await this.#commits.kept(execution.log);
    return run;
  }

  /** The Run as JSON. @throws RivuletError `run_unknown`, `log_removed` */
  run(run_id: string): Promise<string> {
    return this.#live.json(run_id);
  }

  /** Runs as JSON, newest first, and the cursor for those before them, where there are any. */
  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<{ runs: string[]; next?: string }> {
    const rows = await this.#store.runs(filter, before, limit + 1);
    const shown = rows.slice(0, limit);
    const runs = await Promise.all(shown.map(async (row) => JSON.stringify(await foldRow(this.#store, row))));
    const last = shown.at(-1);
    return { runs, ...(rows.length > limit && last !== undefined && { next: last.run_id }) };
  }

  /** Deletes a final run, its log and its messages. @throws RivuletError `run_unknown`, `not_final` */
  async remove(run_id: string): Promise<void> {
    const row = await this.#live.row(run_id);
    if (!isFinal(row.status)) throw fail('not_final', run_id, row.status);
    await this.#store.remove(run_id);
  }

  /** Deletes a session and its runs, which have to be final. @throws RivuletError `session_unknown`, `not_final` */
  async removeSession(session_id: string): Promise<void> {
    await this.#sessions.describe(session_id);
    const [open] = await this.#store.unfinished(session_id, '', 1);
    if (open !== undefined) throw fail('not_final', open.run_id, open.status);
    await this.#store.removeSession(session_id);
  }

  /**
   * A cursor on a run's log, whether the run is live or long over; to be closed.
   * @throws RivuletError `run_unknown`, `log_removed`, `cursor_invalid`
   */
  async watch(run_id: string, options: CursorOptions = {}): Promise<Cursor> {
    return new Cursor(this.#pages, this.#live, await this.#live.find(run_id, options.after), options);
  }

  /** A client reads a run; the run's policy decides what its going means. See `Presence.come`. */
  async reader(run_id: string): Promise<(gone: boolean) => void> {
    const found = await this.#live.find(run_id);
    return this.#presence.come(run_id, ('row' in found ? found.row : found).on_disconnect);
  }

  /** @throws RivuletError `agent_unknown` */
  async manifest(name: string): Promise<AgentManifest> {
    const [manifest] = await withStatus(this.#store, [this.#services.registry.get(name)]);
    if (manifest === undefined) throw fail('agent_unknown', name);
    return manifest;
  }

  /** By name. */
  manifests(limit: number, offset: number): Promise<AgentManifest[]> {
    return withStatus(this.#store, this.#services.registry.list().slice(offset, offset + limit));
  }

  /** @throws RivuletError `session_unknown` */
  session(session_id: string): Promise<Session> {
    return this.#sessions.describe(session_id);
  }

  /** @throws RivuletError `resource_unknown` */
  async resource(resource_id: string): Promise<Resource> {
    const [resource] = await this.#store.resources([resource_id]);
    if (resource === undefined) throw fail('resource_unknown', resource_id);
    return resource;
  }

  /** Ends what is going on, so that every reader comes to an end; the store stays open. See `LiveRuns.stop`. */
  async stop(): Promise<void> {
    const { dispatcher } = this.#services;
    this.#presence.clear();
    await Promise.all([this.#sweeper.stop(), dispatcher.pause()]);
    await this.#live.stop();
    await this.#neighbours.stop();
    await dispatcher.close();
  }

  /** A run that is on disk, or in another process, is taken over to be cancelled: that process can write no more. */
  async #cancelElsewhere(run_id: string): Promise<string> {
    const row = await seize(this.#store, () => this.#live.row(run_id));
    const { await_request: _, ...run } = await foldRow(this.#store, row);
    if (await endStored(this.#store, row, this.#services.now())) this.#endedStored(row);
    return JSON.stringify({ ...run, status: 'cancelling' });
  }

  #endedStored(row: RunRow): void {
    this.#live.touched(row.run_id);
    this.#turns.over(row);
  }
}

/** The time as the wire has it. Many runs ask in the same millisecond, and to write a date costs a microsecond. */
function clock(): () => string {
  let last = 0;
  let text = '';
  return () => {
    const now = Date.now();
    if (now !== last) [last, text] = [now, new Date(now).toISOString()];
    return text;
  };
}
