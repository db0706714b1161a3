import { fail } from '../core/errors.ts';
import type { Delivery, DeliveryFilter } from '../core/outbox.ts';
import {
  hasScope,
  mayAccess,
  mayUseAgent,
  operator,
  ownerOf,
  type Principal,
  sessionKey,
  sessionOwnerOf,
} from '../core/principal.ts';
import type { Resource, RunFilter } from '../core/store.ts';
import type { AgentManifest } from '../schema/agent.ts';
import type { ErasedData, RunCreateRequest } from '../schema/api.ts';
import type { AwaitResumeInput } from '../schema/run.ts';
import type { Session } from '../schema/session.ts';
import type { ChangeReader, ChangesOptions } from './changes/change-reader.ts';
import type { Engine } from './engine.ts';
import type { Cursor, CursorOptions } from './log/cursor.ts';
import type { RunStream } from './log/run-stream.ts';
import type { AcceptedRun, RunOptions } from './runs/create.ts';

/**
 * The engine as one principal may use it: protocols and callers in this process know no other. What another owner has
 * is answered like what does not exist, after the same reads of the store, so that neither text nor time tells of it.
 */
export class Access {
  readonly principal: Principal;
  readonly #engine: Engine;
  readonly #owner: string | null;
  readonly #isAdmin: boolean;

  constructor(engine: Engine, principal: Principal) {
    this.principal = principal;
    this.#engine = engine;
    this.#owner = ownerOf(principal);
    this.#isAdmin = hasScope(principal, 'admin');
  }

  /** What another principal may do. */
  as(principal: Principal): Access {
    return new Access(this.#engine, principal);
  }

  /** @throws RivuletError `scope_missing`, and as `createRun` */
  create(request: RunCreateRequest, options: RunOptions = {}): Promise<AcceptedRun> {
    this.#checkAgent(request.agent_name);
    return this.#engine.create(request, { ...options, principal: this.principal });
  }

  /** A reply lets the agent go on, so it needs what its start needs. @throws as `create`, and as `resumeRun` */
  async resume(run_id: string, input: AwaitResumeInput, options: RunOptions = {}): Promise<AcceptedRun> {
    // Where every agent may be used, the check costs nothing.
    if (!this.#isAdmin || this.principal.agents !== undefined) this.#checkAgent(await this.#agentOf(run_id));
    return this.#engine.resume(run_id, input, { ...options, principal: this.principal });
  }

  /** @throws as `cancelRun` */
  async cancel(run_id: string): Promise<string> {
    await this.#checkRun(run_id);
    return this.#engine.cancel(run_id);
  }

  /** Checks that the principal may read a run. @throws RivuletError `run_unknown`, `log_removed` */
  async check(run_id: string): Promise<void> {
    await this.#agentOf(run_id);
  }

  /** The Run with its input, as JSON. @throws RivuletError `run_unknown`, `log_removed` */
  async details(run_id: string): Promise<string> {
    await this.#checkRun(run_id);
    return this.#engine.details(run_id);
  }

  /** The Run as JSON, as of the event with which it began to await. @throws as `details` */
  async runAt(run_id: string, event_id: number): Promise<string> {
    await this.#checkRun(run_id);
    return this.#engine.runAt(run_id, event_id);
  }

  /** A page of the principal's runs; `admin` gets those of all owners, or of the one that the filter names. */
  runs(filter: RunFilter, before: string | undefined, limit: number): Promise<{ runs: string[]; next?: string }> {
    return this.#engine.runs(this.#ownFilter(filter), before, limit);
  }

  /** The feed of the runs that `runs` lists. The caller closes the reader. @throws RivuletError `store_unavailable` */
  watchRuns(filter: RunFilter, options: ChangesOptions): Promise<ChangeReader> {
    return this.#engine.watchRuns(this.#ownFilter(filter), options);
  }

  /** @throws RivuletError `run_unknown`, `not_final` */
  async remove(run_id: string): Promise<void> {
    await this.#checkRun(run_id);
    return this.#engine.remove(run_id);
  }

  /** @throws RivuletError `run_unknown`, `log_removed`, `cursor_invalid` */
  async stream(run_id: string, options: CursorOptions = {}): Promise<RunStream> {
    await this.#checkRun(run_id);
    return this.#engine.stream(run_id, options);
  }

  /** A cursor on the run stream; the caller closes it. @throws as `stream` */
  async openCursor(run_id: string, options: CursorOptions = {}): Promise<Cursor> {
    await this.#checkRun(run_id);
    return this.#engine.openCursor(run_id, options);
  }

  /** See `ConnectedReaders.connect`. */
  async connectReader(run_id: string): Promise<(disconnected: boolean) => void> {
    await this.#checkRun(run_id);
    return this.#engine.connectReader(run_id);
  }

  /** @throws RivuletError `agent_unknown` */
  async manifest(name: string): Promise<AgentManifest> {
    if (!mayUseAgent(this.principal, name)) throw fail('agent_unknown', name.slice(0, 100));
    return this.#engine.manifest(name, this.#figuresOf);
  }

  /** The manifests of the agents that the principal may run, by name, with the figures of its own runs. */
  manifests(limit: number, offset: number): Promise<AgentManifest[]> {
    const mayUse = (name: string): boolean => mayUseAgent(this.principal, name);
    return this.#engine.manifests(limit, offset, mayUse, this.#figuresOf);
  }

  /** The principal's session; `admin` may name another owner. @throws RivuletError `session_unknown` */
  async session(session_id: string, owner?: string): Promise<Session> {
    return this.#engine.session(this.#sessionKey(session_id, owner));
  }

  /** @throws RivuletError `session_unknown`, `not_final` */
  async removeSession(session_id: string, owner?: string): Promise<void> {
    return this.#engine.removeSession(this.#sessionKey(session_id, owner));
  }

  /** @throws RivuletError `resource_unknown` */
  async resource(resource_id: string): Promise<Resource> {
    const resource = await this.#engine.resource(resource_id);
    if (mayAccess(this.principal, sessionOwnerOf(resource.session_id))) return resource;
    throw fail('resource_unknown', resource_id);
  }

  /**
   * Erases all that the principal owns; `admin` may name another owner. Principals of a tenant own it together.
   * @throws RivuletError `validation_failed` where there is no owner, `scope_missing`, `not_final`
   */
  async erase(owner?: string): Promise<ErasedData> {
    const erased = owner ?? this.#owner;
    this.#checkOwner(owner);
    if (erased === null)
      throw fail('validation_failed', 'owner', 'name one: without authentication, callers own nothing');
    return this.#engine.erase(erased);
  }

  /** The webhooks of the principal; of all owners for `admin`. Newest first. */
  deliveries(filter: DeliveryFilter, before: string | undefined, limit: number): Promise<Delivery[]> {
    return this.#engine.webhooks.list(this.#isAdmin ? filter : { ...filter, owner: this.#owner ?? '' }, before, limit);
  }

  /** The webhooks of a run, newest first. @throws RivuletError `run_unknown` */
  async runDeliveries(run_id: string): Promise<Delivery[]> {
    await this.#agentOf(run_id);
    return this.#engine.webhooks.list({ run_id }, undefined);
  }

  /** Sends a webhook again. @throws RivuletError `delivery_unknown`, `delivery_pending` */
  async replayDelivery(delivery_id: string): Promise<Delivery> {
    const { webhooks } = this.#engine;
    return webhooks.replay(await webhooks.find(delivery_id, (owner) => mayAccess(this.principal, owner)));
  }

  /** Not what the caller itself has instead: it could not be restored. @throws RivuletError `scope_missing` */
  #checkOwner(owner: string | undefined): void {
    if (owner !== undefined && owner !== this.#owner && !this.#isAdmin) throw fail('scope_missing', 'admin');
  }

  // Not async: where every run may be seen, it costs nothing.
  #checkRun(run_id: string): Promise<unknown> | undefined {
    return this.#isAdmin ? undefined : this.#agentOf(run_id);
  }

  /** The name of the agent of a run that the principal may see. @throws RivuletError `run_unknown`, `log_removed` */
  #agentOf(run_id: string): Promise<string> {
    return this.#engine.checkOwner(run_id, (owner) => mayAccess(this.principal, owner));
  }

  #checkAgent(name: string): void {
    if (!mayUseAgent(this.principal, name)) throw fail('agent_unknown', name.slice(0, 100));
    const missing = this.#engine.scopesOf(name).filter((scope) => !hasScope(this.principal, scope));
    if (missing.length > 0) throw fail('scope_missing', missing.join(' '));
  }

  #ownFilter({ owner, ...filter }: RunFilter): RunFilter {
    this.#checkOwner(owner);
    const asked = this.#isAdmin ? owner : (this.#owner ?? '');
    const key = filter.session_id === undefined ? undefined : this.#sessionKey(filter.session_id, owner);
    return { ...filter, ...(asked !== undefined && { owner: asked }), ...(key !== undefined && { session_id: key }) };
  }

  /** `admin` sees the figures of all runs. */
  get #figuresOf(): string | undefined {
    return this.#isAdmin ? undefined : (this.#owner ?? '');
  }

  #sessionKey(session_id: string, owner: string | undefined): string {
    this.#checkOwner(owner);
    return sessionKey(owner ?? this.#owner, session_id);
  }
}

/** The access of each principal. The one where authentication is off is made once. */
export function createAccess(engine: Engine): (principal: Principal) => Access {
  const everything = new Access(engine, operator);
  return (principal) => (principal === operator ? everything : new Access(engine, principal));
}
