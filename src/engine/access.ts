import { fail, RivuletError } from '../core/errors.ts';
import type { Delivery, DeliveryFilter } from '../core/ports/outbox.ts';
import type { RunFilter, StatusPosition } from '../core/ports/run-lists.ts';
import type { Key, RunRow } from '../core/ports/run-store.ts';
import type { Resource } from '../core/ports/session-store.ts';
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
import { type AgentRequest, messagesOf, type RunInput, requestOf } from '../core/request.ts';
import type { AgentManifest } from '../schema/agent.ts';
import type { ErasedData, RunCreateRequest } from '../schema/api.ts';
import type { AwaitResumeInput } from '../schema/run.ts';
import type { Session } from '../schema/session.ts';
import { manifestsOf } from './agents/registry.ts';
import type { ChangeReader, ChangesOptions } from './changes/change-reader.ts';
import { isCheckpoint } from './log/checkpoint.ts';
import type { Cursor, CursorOptions } from './log/cursor.ts';
import { diagnosticsIn } from './log/journal.ts';
import { RunStream } from './log/run-stream.ts';
import { runAgain } from './runs/again.ts';
import { cancelRun } from './runs/cancel.ts';
import { type AcceptedRun, createRun, type RunOptions } from './runs/create.ts';
import {
  type AgentStatusFilter,
  listByStatusTime,
  listRuns,
  type RunPage,
  type RunsByStatusTime,
} from './runs/lists.ts';
import { dropRuns, eraseOwner, removeRun, removeSession } from './runs/remove.ts';
import { resumeRun } from './runs/resume.ts';
import { retryRun } from './runs/retry.ts';
import type { Services } from './services.ts';
import { charsKept, type ReadBudget, unlimited } from './store/read-budget.ts';
import type { IsVisible, VisibleRuns } from './store/visible-runs.ts';
import type { DeliveryPage } from './webhooks/webhooks.ts';

/** `keeps: false` where the caller keeps no event: it writes each to its client, or reads only its head. */
export interface AccessCursorOptions extends CursorOptions {
  readonly keeps?: boolean;
}

/**
 * The runs, sessions and agents of an engine, as one principal may use them. Each operation is allowed here, and done in
 * `runs/`. What another owner has is answered like what does not exist, after the same reads of the store, so that neither
 * text nor time tells the two apart. What a request reads counts against the budget of the request. The JSON that an
 * operation returns is durable.
 */
export class Access {
  readonly principal: Principal;
  readonly #services: Services;
  readonly #owner: string | null;
  readonly #isAdmin: boolean;
  /** Tells which agents the principal may see; undefined where it may see all. */
  readonly #isVisible: IsVisible | undefined;
  readonly #budget: ReadBudget;

  constructor(services: Services, principal: Principal, budget = unlimited) {
    this.principal = principal;
    this.#services = services;
    this.#budget = budget;
    this.#owner = ownerOf(principal);
    this.#isAdmin = hasScope(principal, 'admin');
    this.#isVisible = principal.agents === undefined ? undefined : (name) => mayUseAgent(principal, name);
  }

  /** What another principal may do. */
  as(principal: Principal, budget = this.#budget): Access {
    return new Access(this.#services, principal, budget);
  }

  /**
   * Creates a run and starts it, now or after the earlier runs of its session. @throws RivuletError `scope_missing`, and
   * as `createRun`
   */
  create(request: RunCreateRequest, options: RunOptions = {}): Promise<AcceptedRun> {
    this.#checkAgent(request.agent_name);
    return createRun(this.#services, request, { ...options, principal: this.principal });
  }

  /**
   * Accepts the reply to the question of an awaiting run. It lets the agent go on, so it needs what its start needs.
   * @throws as `create`, and as `resumeRun`
   */
  async resume(run_id: string, input: AwaitResumeInput, options: RunOptions = {}): Promise<AcceptedRun> {
    if (!this.#seesAll) this.#checkAgent(await this.check(run_id));
    return resumeRun(this.#services, run_id, input, { ...options, principal: this.principal });
  }

  /** Makes a run of the caller's. @throws as `create`, and as `runAgain` */
  async again(run_id: string, after: number, options: RunOptions = {}): Promise<AcceptedRun> {
    this.#checkAgent(await this.check(run_id));
    return runAgain(this.#services, run_id, after, { ...options, principal: this.principal });
  }

  /** The run that a request with an idempotency key has made or resumed; undefined where the key is not kept. */
  findKey(scope: string, key: string): Promise<Pick<Key, 'run_id' | 'after'> | undefined> {
    return this.#services.idempotency.find(scope, this.principal, key);
  }

  /** @throws as `cancelRun` */
  cancel(run_id: string, question?: string, reason?: string): Promise<string> {
    return this.#within(run_id, () => cancelRun(this.#services, run_id, question, reason));
  }

  /** @throws as `retryRun` */
  retry(run_id: string): Promise<string> {
    return this.#within(run_id, () => retryRun(this.#services, run_id));
  }

  /** Checks that the principal may read a run. Returns the name of its agent. @throws RivuletError `run_unknown`, `log_removed` */
  check(run_id: string): Promise<string> {
    return this.#services.lookup.check(run_id, this.#sees);
  }

  /** The Run as JSON. @throws RivuletError `run_unknown`, `log_removed` */
  run(run_id: string): Promise<string> {
    return this.#budget.read(() => this.#within(run_id, () => this.#services.lookup.json(run_id)));
  }

  /** The Run with its input, as JSON. @throws as `run` */
  details(run_id: string): Promise<string> {
    const { lookup } = this.#services;
    return this.#budget.read(() =>
      this.#within(run_id, async () => {
        const run = await lookup.json(run_id);
        return `{"input":${JSON.stringify(messagesOf(await this.#inputOf(run_id)))},${run.slice(1)}`;
      }),
    );
  }

  /**
   * A page of the diagnostics of a run as JSON, oldest first: those after the first `after` entries, up to `chars`
   * characters. `next` is the `after` of the next page, if there is one. Diagnostics have what models were told, so that only
   * `admin` reads them.
   * @throws RivuletError `scope_missing`, `run_unknown`, `log_removed`
   */
  async diagnostics(run_id: string, after: number, chars: number): Promise<{ diagnostics: string[]; next?: number }> {
    await this.check(run_id);
    if (!this.#isAdmin) throw fail('scope_missing', 'admin');
    const rest = diagnosticsIn(await this.#services.store.journal(run_id)).slice(after);
    let left = chars;
    const fitting = rest.findIndex(({ length }, index) => {
      left -= length;
      return left < 0 && index > 0;
    });
    const diagnostics = fitting < 0 ? rest : rest.slice(0, fitting);
    for (const diagnostic of diagnostics) this.count(diagnostic);
    return { diagnostics, ...(fitting >= 0 && { next: after + fitting }) };
  }

  /** What the request of a run said beside its messages. @throws RivuletError `run_unknown`, `log_removed` */
  request(run_id: string): Promise<AgentRequest> {
    return this.#within(run_id, async () => requestOf(await this.#inputOf(run_id)));
  }

  /** The Run as JSON, as of the event with which it began to await. @throws as `run` */
  runAt(run_id: string, event_id: number): Promise<string> {
    return this.#budget.read(() => this.#within(run_id, () => this.#services.lookup.jsonAt(run_id, event_id)));
  }

  /** A page of the principal's runs; `admin` gets those of all owners, or of the one that the filter names. */
  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunPage> {
    const page = await listRuns(this.#services, this.#visible(filter), before, limit);
    for (const run of page.runs) this.count(run);
    return page;
  }

  /** A page of the runs that `runs` lists, by the time of their status. See `listByStatusTime`. */
  async runsByStatusTime(
    filter: AgentStatusFilter,
    after: StatusPosition | undefined,
    limit: number,
  ): Promise<RunsByStatusTime> {
    const page = await listByStatusTime(this.#services, this.#visible(filter), after, limit);
    for (const run of page.runs) this.count(run);
    return page;
  }

  /**
   * The states of the runs that `runs` lists, as of now or since a position, then each change. The caller closes the
   * reader. @throws RivuletError `store_unavailable`
   */
  watchRuns(filter: RunFilter, options: ChangesOptions): Promise<ChangeReader> {
    return this.#services.changes.open(this.#visible(filter), options);
  }

  /** Deletes a final run, its log and its messages. @throws RivuletError `run_unknown`, `log_removed`, `not_final` */
  remove(run_id: string): Promise<void> {
    return this.#within(run_id, () => removeRun(this.#services, run_id));
  }

  /** See `dropRuns`. @throws RivuletError `run_unknown`, `log_removed`, `not_final` */
  async drop(run_ids: readonly string[], cancels: boolean): Promise<void> {
    for (const run_id of run_ids) await this.check(run_id);
    return dropRuns(this.#services, run_ids, cancels);
  }

  /**
   * The run stream of any run, live or stored: history after a cursor first, then live.
   * @throws RivuletError `run_unknown`, `log_removed`, `cursor_invalid`
   */
  async stream(run_id: string, options: AccessCursorOptions = {}): Promise<RunStream> {
    await this.#budget.turn();
    const { lookup } = this.#services;
    return this.#within(run_id, async () => {
      const source = await lookup.find(run_id, options.seen ?? options.after);
      return new RunStream(() => lookup.cursor(source, this.#counting(options)));
    });
  }

  /** A cursor on the run stream; the caller closes it. @throws as `stream` */
  openCursor(run_id: string, options: AccessCursorOptions = {}): Promise<Cursor> {
    return this.#within(run_id, () => this.#services.lookup.openCursor(run_id, this.#counting(options)));
  }

  /** Counts a text that the caller keeps. Returns the text. @throws RivuletError `read_too_large`, `too_many_own_reads`, `too_busy` */
  count(text: string): string {
    this.#budget.take(text.length);
    return text;
  }

  /**
   * Reads items of a list one after the other, as many as one answer may hold. Where the list ends early, `last` is the last
   * item that was read. @throws RivuletError `read_too_large` where the first item alone is too large
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

  /**
   * A client reads a run, whose policy decides what happens when the last client disconnects. See
   * `ConnectedReaders.connect`.
   */
  connectReader({ run_id, on_disconnect }: Cursor): (disconnected: boolean) => void {
    const { active, dispatcher, readers } = this.#services;
    // A run that executes here and is not durable ends with this process, where no other one has the store.
    const isKept = dispatcher.shared || active.local(run_id)?.durable !== false;
    return readers.connect(run_id, on_disconnect, isKept);
  }

  /** The manifest of an agent, with the figures of the runs that the principal sees. @throws RivuletError `agent_unknown` */
  async manifest(name: string): Promise<AgentManifest> {
    if (!mayUseAgent(this.principal, name)) throw fail('agent_unknown', name.slice(0, 100));
    const { store, executions } = this.#services;
    const [manifest] = await manifestsOf(store, [executions.registry.get(name)], this.#figuresOf);
    if (manifest === undefined) throw fail('agent_unknown', name);
    return manifest;
  }

  /** Whether the principal may see an agent, and has the scopes that the agent asks for. */
  mayRun(name: string): boolean {
    return mayUseAgent(this.principal, name) && this.#missingScopes(name).length === 0;
  }

  /** The manifests of the agents that the principal may run, by name, with the figures of its own runs. */
  manifests(limit: number, offset: number): Promise<AgentManifest[]> {
    const { store, executions } = this.#services;
    const agents = executions.registry.list().filter(({ manifest }) => mayUseAgent(this.principal, manifest.name));
    return manifestsOf(store, agents.slice(offset, offset + limit), this.#figuresOf);
  }

  /** The manifests of the agents that the principal may run, by name, without figures. Reads nothing from the store. */
  tools(): AgentManifest[] {
    const { registry } = this.#services.executions;
    const manifests = registry.list().map(({ manifest }) => manifest);
    return manifests.filter(({ name }) => mayUseAgent(this.principal, name));
  }

  /** Milliseconds for which the principal's final runs of an agent are kept; Infinity for no limit. */
  keptFor(agent_name: string): number {
    return this.#services.retention.keptFor(agent_name, this.#owner);
  }

  /** The agent that is offered as a tool of this name; undefined where there is none for the principal. */
  tool(name: string): AgentManifest | undefined {
    const manifest = this.#services.executions.registry.findTool(name)?.manifest;
    return manifest !== undefined && mayUseAgent(this.principal, manifest.name) ? manifest : undefined;
  }

  /** The principal's session; `admin` may name another owner. @throws RivuletError `session_unknown` */
  async session(session_id: string, owner?: string): Promise<Session> {
    return this.#services.sessions.describe(this.#sessionKey(session_id, owner), this.#isVisible);
  }

  /** See `removeSession`. @throws RivuletError `session_unknown`, `not_final` */
  async removeSession(session_id: string, owner?: string): Promise<void> {
    return removeSession(this.#services, this.#sessionKey(session_id, owner), this.#isVisible);
  }

  /** @throws RivuletError `resource_unknown` */
  async resource(resource_id: string): Promise<Resource> {
    const { store, sessions } = this.#services;
    const [resource] = await store.resources([resource_id]);
    if (
      resource === undefined ||
      isCheckpoint(resource) ||
      !(await sessions.shows(resource, this.#isVisible)) ||
      !mayAccess(this.principal, sessionOwnerOf(resource.session_id))
    )
      throw fail('resource_unknown', resource_id);
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
    return eraseOwner(this.#services, erased);
  }

  /** A page of the webhooks of the principal; of all owners for `admin`. Newest first. */
  deliveries(filter: DeliveryFilter, before: string | undefined, limit: number): Promise<DeliveryPage> {
    const own = this.#isAdmin ? filter : { ...filter, owner: this.#owner ?? '' };
    return this.#services.webhooks.page(own, before, limit, this.#isVisible);
  }

  /** The webhooks of a run, newest first. @throws RivuletError `run_unknown` */
  async runDeliveries(run_id: string): Promise<Delivery[]> {
    await this.check(run_id);
    return this.#services.webhooks.ofRun(run_id);
  }

  /** Sends a webhook again. @throws RivuletError `delivery_unknown`, `delivery_pending` */
  async replayDelivery(delivery_id: string): Promise<Delivery> {
    const { webhooks } = this.#services;
    return webhooks.replay(await webhooks.find(delivery_id, this.#sees));
  }

  /** Whether runs may have targets, and webhooks. */
  get canPush(): boolean {
    return this.#services.webhooks.areOn;
  }

  /**
   * The targets of a run that a protocol has added. Only an owner of the run that may write gets their secrets; `admin` of
   * another owner does not.
   * @throws RivuletError `run_unknown`, `log_removed`
   */
  async targets(run_id: string, form: string): Promise<PushTarget[]> {
    await this.check(run_id);
    const reader = hasScope(this.principal, 'runs:write') ? this.#owner : undefined;
    return this.#services.webhooks.targets(run_id, form, reader);
  }

  /**
   * Adds a target to a run, or replaces the one with its id: it gets the changes of status after that.
   * @throws RivuletError `run_unknown`, `log_removed`, `webhooks_off`, `validation_failed`, `conflict`
   */
  async putTarget(run_id: string, target: PushTarget): Promise<void> {
    await this.check(run_id);
    return this.#services.webhooks.putTarget(run_id, target);
  }

  /** What waits to be sent to the target is given up. @throws RivuletError `run_unknown`, `log_removed`, `conflict` */
  async removeTarget(run_id: string, id: string): Promise<void> {
    await this.check(run_id);
    return this.#services.webhooks.removeTarget(run_id, id);
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
    const execution = this.#seesAll ? undefined : this.#services.active.local(run_id);
    if (this.#seesAll || (execution !== undefined && this.#sees(execution.log.row))) return work();
    return this.check(run_id).then(work);
  }

  /** What the request of a run said. @throws RivuletError `run_unknown` where the run was removed meanwhile */
  async #inputOf(run_id: string): Promise<RunInput> {
    const input = await this.#services.store.input(run_id);
    if (input === undefined) throw fail('run_unknown', run_id);
    return input;
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
    const scopes = this.#services.executions.registry.find(name)?.options.scopes ?? [];
    return scopes.filter((scope) => !hasScope(this.principal, scope));
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
