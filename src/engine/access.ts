import { fail, RivuletError } from '../core/errors.ts';
import type { Delivery, DeliveryFilter } from '../core/outbox.ts';
import {
  hasScope,
  mayAccess,
  maySeeRun,
  mayUseAgent,
  ownerOf,
  type Principal,
  sessionKey,
  sessionOwnerOf,
} from '../core/principal.ts';
import type { PushTarget } from '../core/push-targets.ts';
import type { AgentRequest } from '../core/request.ts';
import type { Resource, RunFilter, RunRow, StatusPosition } from '../core/store.ts';
import type { AgentManifest } from '../schema/agent.ts';
import type { ErasedData, RunCreateRequest } from '../schema/api.ts';
import type { AwaitResumeInput } from '../schema/run.ts';
import type { Session } from '../schema/session.ts';
import type { ChangeReader, ChangesOptions } from './changes/change-reader.ts';
import type { AgentStatusFilter, Engine, RunsByStatusTime } from './engine.ts';
import type { Cursor, CursorOptions } from './log/cursor.ts';
import type { RunStream } from './log/run-stream.ts';
import { charsKept, type ReadBudget, unlimited } from './read-budget.ts';
import type { AcceptedRun, RunOptions } from './runs/create.ts';
import type { IsVisible, VisibleRuns } from './visible-runs.ts';
import type { DeliveryPage } from './webhooks/webhooks.ts';

/** `keeps: false` where the caller keeps no event: it writes each to its client, or reads only its head. */
export interface AccessCursorOptions extends CursorOptions {
  readonly keeps?: boolean;
}

/**
 * The engine as one principal may use it: protocols and callers in this process know no other. What another owner has
 * is answered like what does not exist, after the same reads of the store, so that neither text nor time tells of it.
 * What it reads for a request counts against the budget of that request.
 */
export class Access {
  readonly principal: Principal;
  readonly #engine: Engine;
  readonly #owner: string | null;
  readonly #isAdmin: boolean;
  /** Tells which agents the principal may see; undefined where it may see all. */
  readonly #isVisible: IsVisible | undefined;
  readonly #budget: ReadBudget;

  constructor(engine: Engine, principal: Principal, budget = unlimited) {
    this.principal = principal;
    this.#engine = engine;
    this.#budget = budget;
    this.#owner = ownerOf(principal);
    this.#isAdmin = hasScope(principal, 'admin');
    this.#isVisible = principal.agents === undefined ? undefined : (name) => mayUseAgent(principal, name);
  }

  /** What another principal may do. */
  as(principal: Principal): Access {
    return new Access(this.#engine, principal, this.#budget);
  }

  /** @throws RivuletError `scope_missing`, and as `createRun` */
  create(request: RunCreateRequest, options: RunOptions = {}): Promise<AcceptedRun> {
    this.#checkAgent(request.agent_name);
    return this.#engine.create(request, { ...options, principal: this.principal });
  }

  /** A reply lets the agent go on, so it needs what its start needs. @throws as `create`, and as `resumeRun` */
  async resume(run_id: string, input: AwaitResumeInput, options: RunOptions = {}): Promise<AcceptedRun> {
    // Where every run may be seen, the check costs nothing.
    if (!this.#seesAll) this.#checkAgent(await this.#agentOf(run_id));
    return this.#engine.resume(run_id, input, { ...options, principal: this.principal });
  }

  /** Makes a run of the caller's. @throws as `create`, and as `runAgain` */
  async again(run_id: string, after: number, options: RunOptions = {}): Promise<AcceptedRun> {
    this.#checkAgent(await this.#agentOf(run_id));
    return this.#engine.again(run_id, after, { ...options, principal: this.principal });
  }

  /** The run that a request with an idempotency key has made or resumed; undefined where the key is not kept. */
  findKey(scope: string, key: string): Promise<{ readonly run_id: string; readonly after: number } | undefined> {
    return this.#engine.findKey(scope, key, this.principal);
  }

  /** @throws as `cancelRun` */
  cancel(run_id: string, question?: string): Promise<string> {
    return this.#within(run_id, () => this.#engine.cancel(run_id, question));
  }

  /** @throws as `retryRun` */
  retry(run_id: string): Promise<string> {
    return this.#within(run_id, () => this.#engine.retry(run_id));
  }

  /** Checks that the principal may read a run. Returns the name of its agent. @throws RivuletError `run_unknown`, `log_removed` */
  check(run_id: string): Promise<string> {
    return this.#agentOf(run_id);
  }

  /** The Run with its input, as JSON. @throws RivuletError `run_unknown`, `log_removed` */
  details(run_id: string): Promise<string> {
    return this.#budget.read(() => this.#within(run_id, () => this.#engine.details(run_id)));
  }

  /**
   * See `Engine.diagnostics`. What models were told is the operator's, so that only `admin` reads it.
   * @throws RivuletError `scope_missing`, `run_unknown`, `log_removed`
   */
  async diagnostics(run_id: string, after: number, chars: number): Promise<{ diagnostics: string[]; next?: number }> {
    await this.#agentOf(run_id);
    if (!this.#isAdmin) throw fail('scope_missing', 'admin');
    const page = await this.#engine.diagnostics(run_id, after, chars);
    for (const diagnostic of page.diagnostics) this.count(diagnostic);
    return page;
  }

  /** What the request of a run said beside its messages. @throws RivuletError `run_unknown`, `log_removed` */
  request(run_id: string): Promise<AgentRequest> {
    return this.#within(run_id, () => this.#engine.request(run_id));
  }

  /** The Run as JSON, as of the event with which it began to await. @throws as `details` */
  runAt(run_id: string, event_id: number): Promise<string> {
    return this.#budget.read(() => this.#within(run_id, () => this.#engine.runAt(run_id, event_id)));
  }

  /** A page of the principal's runs; `admin` gets those of all owners, or of the one that the filter names. */
  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<{ runs: string[]; next?: string }> {
    const page = await this.#engine.runs(this.#visible(filter), before, limit);
    for (const run of page.runs) this.count(run);
    return page;
  }

  /** A page of the runs that `runs` lists, by the time of their status. See `Engine.runsByStatusTime`. */
  async runsByStatusTime(
    filter: AgentStatusFilter,
    after: StatusPosition | undefined,
    limit: number,
  ): Promise<RunsByStatusTime> {
    const page = await this.#engine.runsByStatusTime(this.#visible(filter), after, limit);
    for (const run of page.runs) this.count(run);
    return page;
  }

  /** The feed of the runs that `runs` lists. The caller closes the reader. @throws RivuletError `store_unavailable` */
  watchRuns(filter: RunFilter, options: ChangesOptions): Promise<ChangeReader> {
    return this.#engine.watchRuns(this.#visible(filter), options);
  }

  /** @throws RivuletError `run_unknown`, `not_final` */
  remove(run_id: string): Promise<void> {
    return this.#within(run_id, () => this.#engine.remove(run_id));
  }

  /** See `dropRuns`. @throws RivuletError `run_unknown`, `log_removed`, `not_final` */
  async drop(run_ids: readonly string[], cancels: boolean): Promise<void> {
    for (const run_id of run_ids) await this.#agentOf(run_id);
    return this.#engine.drop(run_ids, cancels);
  }

  /** @throws RivuletError `run_unknown`, `log_removed`, `cursor_invalid` */
  async stream(run_id: string, options: AccessCursorOptions = {}): Promise<RunStream> {
    await this.#budget.turn();
    return this.#within(run_id, () => this.#engine.stream(run_id, this.#counting(options)));
  }

  /** A cursor on the run stream; the caller closes it. @throws as `stream` */
  openCursor(run_id: string, options: AccessCursorOptions = {}): Promise<Cursor> {
    return this.#within(run_id, () => this.#engine.openCursor(run_id, this.#counting(options)));
  }

  /** Counts a text that the caller keeps. Returns the text. @throws RivuletError `read_too_large`, `too_many_own_reads`, `too_busy` */
  count(text: string): string {
    this.#budget.take(text.length);
    return text;
  }

  /**
   * Reads items of a list one after the other, as many as one answer may hold. `last` is the last item that was read, where
   * the list ends early. @throws RivuletError `read_too_large` where the first item alone is too large
   */
  async page<Item, Read>(
    items: readonly Item[],
    read: (item: Item) => Promise<Read>,
  ): Promise<{ readonly found: Read[]; readonly last?: Item }> {
    const found: Read[] = [];
    for (const [index, item] of items.entries()) {
      const before = items[index - 1];
      if (before !== undefined && this.#budget.pageFull) return { found, last: before };
      try {
        found.push(await read(item));
      } catch (error) {
        const isTooLarge = error instanceof RivuletError && error.kind === 'read_too_large';
        if (before === undefined || !isTooLarge) throw error;
        return { found, last: before };
      }
    }
    return { found };
  }

  /** See `ConnectedReaders.connect`. */
  connectReader(cursor: Cursor): (disconnected: boolean) => void {
    return this.#engine.connectReader(cursor);
  }

  /** @throws RivuletError `agent_unknown` */
  async manifest(name: string): Promise<AgentManifest> {
    if (!mayUseAgent(this.principal, name)) throw fail('agent_unknown', name.slice(0, 100));
    return this.#engine.manifest(name, this.#figuresOf);
  }

  /** Whether the principal may see an agent, and has the scopes that the agent asks for. */
  mayRun(name: string): boolean {
    return mayUseAgent(this.principal, name) && this.#missingScopes(name).length === 0;
  }

  /** The manifests of the agents that the principal may run, by name, with the figures of its own runs. */
  manifests(limit: number, offset: number): Promise<AgentManifest[]> {
    const mayUse = (name: string): boolean => mayUseAgent(this.principal, name);
    return this.#engine.manifests(limit, offset, mayUse, this.#figuresOf);
  }

  /** The manifests of the agents that the principal may run, by name, without figures: they cost no read of the store. */
  tools(): AgentManifest[] {
    return this.#engine.tools().filter(({ name }) => mayUseAgent(this.principal, name));
  }

  /** Milliseconds for which the principal's final runs of an agent are kept; Infinity for no limit. */
  keptFor(agent_name: string): number {
    return this.#engine.keptFor(agent_name, this.#owner);
  }

  /** The agent that is offered as a tool of this name; undefined where there is none for the principal. */
  tool(name: string): AgentManifest | undefined {
    const manifest = this.#engine.tool(name);
    return manifest !== undefined && mayUseAgent(this.principal, manifest.name) ? manifest : undefined;
  }

  /** The principal's session; `admin` may name another owner. @throws RivuletError `session_unknown` */
  async session(session_id: string, owner?: string): Promise<Session> {
    return this.#engine.session(this.#sessionKey(session_id, owner), this.#isVisible);
  }

  /** See `Engine.removeSession`. @throws RivuletError `session_unknown`, `not_final` */
  async removeSession(session_id: string, owner?: string): Promise<void> {
    return this.#engine.removeSession(this.#sessionKey(session_id, owner), this.#isVisible);
  }

  /** @throws RivuletError `resource_unknown` */
  async resource(resource_id: string): Promise<Resource> {
    const resource = await this.#engine.resource(resource_id, this.#isVisible);
    if (!mayAccess(this.principal, sessionOwnerOf(resource.session_id))) throw fail('resource_unknown', resource_id);
    this.count(resource.body);
    return resource;
  }

  /**
   * Erases all that the principal owns; `admin` may name another owner. Principals of a tenant own it together.
   * @throws RivuletError `validation_failed` where there is no owner, `scope_missing`, `agents_limited`, `not_final`
   */
  async erase(owner?: string): Promise<ErasedData> {
    const erased = owner ?? this.#owner;
    this.#checkOwner(owner);
    if (this.#isVisible !== undefined) throw fail('agents_limited');
    if (erased === null)
      throw fail('validation_failed', 'owner', 'name one: without authentication, callers own nothing');
    return this.#engine.erase(erased);
  }

  /** A page of the webhooks of the principal; of all owners for `admin`. Newest first. */
  deliveries(filter: DeliveryFilter, before: string | undefined, limit: number): Promise<DeliveryPage> {
    const own = this.#isAdmin ? filter : { ...filter, owner: this.#owner ?? '' };
    return this.#engine.webhooks.page(own, before, limit, this.#isVisible);
  }

  /** The webhooks of a run, newest first. @throws RivuletError `run_unknown` */
  async runDeliveries(run_id: string): Promise<Delivery[]> {
    await this.#agentOf(run_id);
    return this.#engine.webhooks.ofRun(run_id);
  }

  /** Sends a webhook again. @throws RivuletError `delivery_unknown`, `delivery_pending` */
  async replayDelivery(delivery_id: string): Promise<Delivery> {
    const { webhooks } = this.#engine;
    return webhooks.replay(await webhooks.find(delivery_id, this.#sees));
  }

  /** Whether runs may have targets, and webhooks. */
  get canPush(): boolean {
    return this.#engine.webhooks.areOn;
  }

  /**
   * The targets of a run that a protocol has added. Only an owner of the run that may write gets their secrets; `admin` of
   * another owner does not.
   * @throws RivuletError `run_unknown`, `log_removed`
   */
  async targets(run_id: string, form: string): Promise<PushTarget[]> {
    await this.#agentOf(run_id);
    const reader = hasScope(this.principal, 'runs:write') ? this.#owner : undefined;
    return this.#engine.webhooks.targets(run_id, form, reader);
  }

  /**
   * Adds a target to a run, or replaces the one with its id: it gets the changes of status after that.
   * @throws RivuletError `run_unknown`, `log_removed`, `webhooks_off`, `validation_failed`, `conflict`
   */
  async putTarget(run_id: string, target: PushTarget): Promise<void> {
    await this.#agentOf(run_id);
    return this.#engine.webhooks.putTarget(run_id, target);
  }

  /** What waits to be sent to the target is given up. @throws RivuletError `run_unknown`, `log_removed`, `conflict` */
  async removeTarget(run_id: string, id: string): Promise<void> {
    await this.#agentOf(run_id);
    return this.#engine.webhooks.removeTarget(run_id, id);
  }

  /** Not what the caller itself has instead: it could not be restored. @throws RivuletError `scope_missing` */
  #checkOwner(owner: string | undefined): void {
    if (owner !== undefined && owner !== this.#owner && !this.#isAdmin) throw fail('scope_missing', 'admin');
  }

  #counting({ keeps = true, ...options }: AccessCursorOptions): CursorOptions {
    if (!keeps || this.#budget === unlimited) return options;
    return { ...options, onRead: (batch) => this.#budget.take(charsKept(batch)) };
  }

  /** Works on a run that the principal may see: at once where it sees all, and where the run executes here. */
  #within<T>(run_id: string, work: () => Promise<T>): Promise<T> {
    if (this.#seesAll || this.#engine.executes(run_id, this.#sees)) return work();
    return this.#agentOf(run_id).then(work);
  }

  /** The name of the agent of a run that the principal may see. @throws RivuletError `run_unknown`, `log_removed` */
  #agentOf(run_id: string): Promise<string> {
    return this.#engine.check(run_id, this.#sees);
  }

  readonly #sees = (run: Pick<RunRow, 'owner' | 'agent_name'>): boolean => maySeeRun(this.principal, run);

  get #seesAll(): boolean {
    return this.#isAdmin && this.#isVisible === undefined;
  }

  #checkAgent(name: string): void {
    if (!mayUseAgent(this.principal, name)) throw fail('agent_unknown', name.slice(0, 100));
    const missing = this.#missingScopes(name);
    if (missing.length > 0) throw fail('scope_missing', missing.join(' '));
  }

  #missingScopes(name: string): string[] {
    return this.#engine.scopesOf(name).filter((scope) => !hasScope(this.principal, scope));
  }

  /** The filter, so that it matches only runs that the principal may see. */
  #visible<T extends Pick<RunFilter, 'owner' | 'session_id'>>(filter: T): T & Pick<VisibleRuns, 'isVisible'> {
    const { owner, session_id } = filter;
    this.#checkOwner(owner);
    const asked = this.#isAdmin ? owner : (this.#owner ?? '');
    const key = session_id === undefined ? undefined : this.#sessionKey(session_id, owner);
    return {
      ...filter,
      ...(asked !== undefined && { owner: asked }),
      ...(key !== undefined && { session_id: key }),
      ...(this.#isVisible !== undefined && { isVisible: this.#isVisible }),
    };
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
