import { v7 as uuid } from 'uuid';
import type { Agent, AgentLog } from '../core/agent.ts';
import { checkContentTypes } from '../core/content-type.ts';
import { fail } from '../core/errors.ts';
import { receiveMessage } from '../core/messages.ts';
import type { Resource, RunRow, Store } from '../core/store.ts';
import { createToEvents } from '../core/to-events.ts';
import type { AgentManifest } from '../schema/agent.ts';
import type { RunCreateRequest } from '../schema/api.ts';
import type { AwaitResume, AwaitResumeInput, Run } from '../schema/run.ts';
import type { Session } from '../schema/session.ts';
import { Commits } from './commits.ts';
import { Execution, type Services } from './execution.ts';
import { withStatus } from './figures.ts';
import { defaultLimits, type Limits } from './limits.ts';
import { endInterrupted, foldRow } from './recover.ts';
import { type Hosted, Registry } from './registry.ts';
import { RunLog } from './run-log.ts';
import { type FetchResource, Sessions } from './sessions.ts';
import { openWatch, type Watch, type WatchOptions } from './watch.ts';

export interface EngineOptions {
  readonly agents: Iterable<Hosted>;
  readonly store: Store;
  readonly fetchResource: FetchResource;
  readonly publicUrl: () => string;
  readonly logFor: (run_id: string) => AgentLog;
  readonly limits?: Partial<Limits>;
}

/** A run that has begun, or gone on: its Run as JSON as of then, and where what follows begins in its log. */
export interface Begun {
  readonly run_id: string;
  readonly run: string;
  readonly after: number;
}

/**
 * The only door to runs. Whatever it answers as JSON is durable: no caller is told
 * what the store could still lose.
 */
export class Engine {
  readonly #store: Store;
  readonly #commits: Commits;
  readonly #registry: Registry;
  readonly #sessions: Sessions;
  readonly #services: Services;
  readonly #live = new Map<string, Execution>();

  /** @throws Error that names agent and source where a name is bad or used twice */
  constructor({ agents, store, fetchResource, publicUrl, logFor, limits }: EngineOptions) {
    const now = (): string => new Date().toISOString();
    this.#store = store;
    this.#commits = new Commits(store);
    this.#registry = new Registry(agents);
    this.#sessions = new Sessions(store, fetchResource, publicUrl);
    this.#services = {
      registry: this.#registry,
      sessions: this.#sessions,
      toEvents: createToEvents(now),
      limits: { ...defaultLimits, ...limits },
      now,
      logFor,
    };
  }

  /** Looks after the runs that an earlier process left; call it before serving. */
  async start(): Promise<void> {
    await endInterrupted(this.#store, this.#services.now);
  }

  /**
   * Makes a run and starts it.
   * @throws RivuletError `agent_unknown`, `misfit`, `content_type_refused`, `session_mismatch`, `store_failed`
   */
  async create(request: RunCreateRequest): Promise<Begun> {
    const agent = this.#registry.get(request.agent_name);
    const now = this.#services.now();
    const input = request.input.map((message, index) => receiveMessage(message, `input[${index}]`, now));
    checkContentTypes(agent.manifest.name, agent.manifest.input_content_types ?? ['*/*'], input);
    const session_id = sessionOf(request);
    const run: Run = {
      run_id: uuid(),
      agent_name: agent.manifest.name,
      session_id,
      status: 'created',
      output: [],
      created_at: now,
    };
    const log = new RunLog(this.#commits, rowOf(run, session_id), input);
    log.attach(this.#sessions.adopt(request.session));
    const execution = new Execution(agent, run, input, log, this.#services);
    const created = JSON.stringify(run);
    this.#live.set(run.run_id, execution);
    await this.#keep(execution);
    execution.start();
    return { run_id: run.run_id, run: created, after: 0 };
  }

  /**
   * Answers what an awaiting run asked.
   * @throws RivuletError `run_unknown`, `not_awaiting`, `other_await`, `misfit`
   */
  async resume(run_id: string, input: AwaitResumeInput): Promise<Begun> {
    const execution = this.#live.get(run_id);
    if (execution === undefined) throw fail('not_awaiting', run_id, (await this.#row(run_id)).status);
    const after = execution.resume(this.#reply(execution.run, input));
    const run = JSON.stringify(execution.run);
    await execution.log.flushed();
    return { run_id, run, after };
  }

  /**
   * Cancels a run; answers it as `cancelling`.
   * @throws RivuletError `run_unknown`, `already_final`
   */
  async cancel(run_id: string): Promise<string> {
    const execution = this.#live.get(run_id);
    if (execution === undefined) throw fail('already_final', run_id, (await this.#row(run_id)).status);
    execution.cancel();
    const run = JSON.stringify(execution.run);
    await execution.log.flushed();
    return run;
  }

  /** The Run as JSON. @throws RivuletError `run_unknown` */
  async run(run_id: string): Promise<string> {
    const execution = this.#live.get(run_id);
    if (execution === undefined) return JSON.stringify(await foldRow(this.#store, await this.#row(run_id)));
    const run = JSON.stringify(execution.run);
    await execution.log.flushed();
    return run;
  }

  /**
   * A cursor on a run's log, whether the run is live or long over.
   * @throws RivuletError `run_unknown`, `cursor_invalid`
   */
  async watch(run_id: string, options: WatchOptions = {}): Promise<Watch> {
    const log = this.#live.get(run_id)?.log;
    return openWatch(this.#store, log ?? (await this.#row(run_id)), options);
  }

  /** @throws RivuletError `agent_unknown` */
  async manifest(name: string): Promise<AgentManifest> {
    const [manifest] = await withStatus(this.#store, [this.#registry.get(name)]);
    if (manifest === undefined) throw fail('agent_unknown', name);
    return manifest;
  }

  /** By name. */
  manifests(limit: number, offset: number): Promise<AgentManifest[]> {
    return withStatus(this.#store, this.agents().slice(offset, offset + limit));
  }

  agents(): Agent[] {
    return this.#registry.list();
  }

  /** @throws RivuletError `session_unknown` */
  session(session_id: string): Promise<Session> {
    return this.#sessions.describe(session_id);
  }

  /** @throws RivuletError `resource_unknown` */
  async resource(resource_id: string): Promise<Resource> {
    const resource = await this.#store.resource(resource_id);
    if (resource === undefined) throw fail('resource_unknown', resource_id);
    return resource;
  }

  /** Ends what is going on, so that every reader comes to an end; the store stays open. */
  async close(): Promise<void> {
    for (const execution of this.#live.values()) execution.interrupt();
    await this.#commits.drained();
  }

  // Waits until the run is durable, then until it is over, and lets it go.
  async #keep(execution: Execution): Promise<void> {
    const { run_id } = execution.run;
    try {
      await execution.log.flushed();
    } catch (error) {
      this.#live.delete(run_id);
      throw error;
    }
    execution.log.whenOver(() => {
      this.#live.delete(run_id);
      if (execution.log.failure !== undefined) execution.lost(execution.log.failure);
    });
  }

  async #row(run_id: string): Promise<RunRow> {
    const row = await this.#store.run(run_id);
    if (row === undefined) throw fail('run_unknown', run_id);
    return row;
  }

  #reply(run: Run, input: AwaitResumeInput): AwaitResume {
    const wanted = run.await_request?.type;
    if (wanted === undefined) throw fail('not_awaiting', run.run_id, run.status);
    if (input.type !== wanted) throw fail('other_await', wanted, input.type);
    if (input.message === undefined) throw fail('misfit', 'await_resume.message', 'is required');
    const message = receiveMessage(input.message, 'await_resume.message', this.#services.now());
    return { ...input, type: wanted, message };
  }
}

function sessionOf({ session_id, session }: RunCreateRequest): string {
  const [a, b] = [session_id?.toLowerCase(), session?.id.toLowerCase()];
  if (a !== undefined && b !== undefined && a !== b) throw fail('session_mismatch', a, b);
  return a ?? b ?? uuid();
}

const rowOf = (run: Run, session_id: string): RunRow => ({
  run_id: run.run_id,
  agent_name: run.agent_name,
  session_id,
  owner: null,
  epoch: 1,
  status: run.status,
  created_at: run.created_at,
  finished_at: null,
  last: 0,
  snapshot: 0,
});
