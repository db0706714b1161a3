import { concatMap, defer, from, type Observable } from 'rxjs';
import type { AgentLog } from '../core/agent.ts';
import { isInterrupted } from '../core/cut-off.ts';
import { encodeMessage, flat } from '../core/encode.ts';
import { fail, RivuletError } from '../core/errors.ts';
import { historyOf } from '../core/history.ts';
import { reasonOf } from '../core/json.ts';
import { receiveMessage } from '../core/messages.ts';
import type { Extras, RunRow } from '../core/ports/run-store.ts';
import type { Resource } from '../core/ports/session-store.ts';
import type { Store } from '../core/ports/store.ts';
import { sessionIdOf, sessionOwnerOf } from '../core/principal.ts';
import { messagesOf, type RunInput } from '../core/request.ts';
import { Delay, retry } from '../core/timing.ts';
import { compile, type Validator } from '../core/validate.ts';
import { uuidPattern } from '../schema/formats.ts';
import { type Message, MessageInput } from '../schema/message.ts';
import type { Run } from '../schema/run.ts';
import type { Session, SessionInput } from '../schema/session.ts';
import { newIdBeside } from './ids.ts';
import { pages } from './store/pages.ts';
import type { IsVisible } from './store/visible-runs.ts';

/** Reads a resource of another server; rejects with a reason that clients may see. Guarded: see `http/remote-fetch`. */
export type FetchResource = (url: string, signal: AbortSignal) => Promise<string>;

const resourcePath = '/resources/';
/** Messages that one call of the store reads. */
const pageSize = 100;
/** The URL of a resource of any Rivulet server; its id shows whether this store has it. */
const anyResource = new RegExp(`^https?://.*/resources/(${uuidPattern})$`);
/** URLs of other servers that one session may have: an agent that reads the history makes a request for each. */
const maxForeign = 1_000;
/** The newest entries of a history, which is all that clients get: a session may go on for years. */
const maxListedMessages = 10_000;
/** Unreadable messages after which a run makes no more requests to other servers. */
const maxUnreadable = 10;

/** Attempts to read a message of another server that a run has read before; about four seconds. */
const maxFetches = 8;

/** A run and its session. */
type RunKey = Pick<RunRow, 'session_id' | 'run_id'>;

/** The extent of a history: the number of its messages, the last one's URL, and the URLs that were left out. */
export interface HistoryMark {
  readonly count: number;
  readonly last: string | null;
  readonly without: readonly string[];
  /** Some URLs before the last one, newest first, in case that one is gone later: 1, 2, 4, 8 and so on before it. */
  readonly before?: readonly string[];
}

export interface History {
  readonly messages: readonly Message[];
  readonly mark: HistoryMark;
}

/**
 * The URLs of a history to read. An unreadable one is an error if `strict`; otherwise it is added to `without`. `again`: a
 * run that is re-entered has read them before.
 */
interface HistoryReading {
  readonly run_id: string;
  /** Of the session: resources of other owners are not read. */
  readonly owner: string | null;
  readonly urls: readonly string[];
  readonly strict: boolean;
  readonly again: boolean;
  readonly without: Set<string>;
}

/** Sessions, by their keys: their states, and their histories of URLs, with messages in this store or on other servers. */
export class Sessions {
  readonly #store: Store;
  readonly #fetch: FetchResource;
  readonly #publicUrl: () => string;
  readonly #logFor: (run_id: string) => AgentLog;
  readonly #checkMessage: Validator<MessageInput> = compile(MessageInput, 'message');

  /** `publicUrl` is a function, because a server on port 0 knows its own address only once it listens. */
  constructor(store: Store, fetch: FetchResource, publicUrl: () => string, logFor: (run_id: string) => AgentLog) {
    this.#store = store;
    this.#fetch = fetch;
    this.#publicUrl = publicUrl;
    this.#logFor = logFor;
  }

  /**
   * The session with the newest 10,000 URLs of its history. A caller that may see only some agents gets the messages of
   * their runs. It gets the state where all runs are theirs, and no session without any.
   * @throws RivuletError `session_unknown`
   */
  async describe(session_id: string, isVisible?: IsVisible): Promise<Session> {
    const row = await this.#store.session(session_id);
    const { visible, hidden } = await this.runsOf(session_id, isVisible);
    if (row === undefined || (isVisible !== undefined && visible.length === 0))
      throw fail('session_unknown', sessionIdOf(session_id));
    const history = row.history.slice(-maxListedMessages);
    const shown = hidden.size === 0 ? history : await this.#without(history, hidden);
    return {
      id: sessionIdOf(row.session_id),
      history: shown.map((url) => this.#absolute(url)),
      ...(row.state !== null && hidden.size === 0 && { state: this.#absolute(row.state) }),
    };
  }

  /** The runs of a session that a caller may see, and the ids of the others. Read only where the caller is limited. */
  async runsOf(session_id: string, isVisible?: IsVisible): Promise<{ visible: RunRow[]; hidden: Set<string> }> {
    const visible: RunRow[] = [];
    const hidden = new Set<string>();
    if (isVisible === undefined) return { visible, hidden };
    const read = (before?: RunRow) => this.#store.runs({ session_id }, before?.run_id, pageSize);
    for await (const rows of pages(pageSize, read)) {
      for (const row of rows) {
        if (isVisible(row.agent_name)) visible.push(row);
        else hidden.add(row.run_id);
      }
    }
    return { visible, hidden };
  }

  /** Whether a caller may see a resource: by the agent of its run. A state is shown by the agents of its session. */
  async shows({ run_id, session_id }: Resource, isVisible?: IsVisible): Promise<boolean> {
    if (isVisible === undefined) return true;
    if (run_id === null) return (await this.runsOf(session_id, isVisible)).hidden.size === 0;
    const row = await this.#store.run(run_id);
    return row !== undefined && isVisible(row.agent_name);
  }

  /** The URLs, without the URLs of some runs' messages. */
  async #without(urls: readonly string[], run_ids: ReadonlySet<string>): Promise<string[]> {
    const left: string[] = [];
    for (const some of pagesOf(urls)) {
      const own = some.filter((url) => !isForeign(url));
      const found = await this.#resources(own);
      const hidden = new Set(own.filter((_, index) => run_ids.has(found[index]?.run_id ?? '')));
      left.push(...some.filter((url) => !hidden.has(url)));
    }
    return left;
  }

  /**
   * A client's descriptor, in which URLs of resources of this store become paths. So a server may change its address,
   * and nodes that share a store under several addresses do not duplicate its history.
   * @throws RivuletError `validation_failed` where the session would have too many URLs of other servers
   */
  async receiveDescriptor({ history = [], state, ...rest }: SessionInput, session_id: string): Promise<SessionInput> {
    const ids = history.map((url) => anyResource.exec(url)?.[1]);
    const asked = ids.filter((id) => id !== undefined);
    const found = asked.length === 0 ? [] : await this.#store.resources(asked);
    const own = new Set(found.flatMap((one) => (one?.session_id === session_id ? [one.resource_id] : [])));
    const urls = history.map((url, at) => {
      const id = ids[at];
      return id !== undefined && own.has(id) ? `${resourcePath}${id}` : this.#relative(url);
    });
    const before = urls.length === 0 ? [] : ((await this.#store.session(session_id))?.history ?? []);
    if ([...new Set([...before, ...urls])].filter(isForeign).length > maxForeign) {
      throw fail('validation_failed', 'session.history', `a session has at most ${maxForeign} URLs of other servers`);
    }
    return { ...rest, history: urls, ...(state !== undefined && { state: this.#relative(state) }) };
  }

  /**
   * What a descriptor adds to its session. If it has a history, this run reads that one and not the session's; it is
   * kept as a resource of the run, under the run's id.
   */
  descriptorExtras({ history = [], state }: SessionInput, { session_id, run_id }: RunKey): Extras {
    const body = JSON.stringify(history);
    const resource = { resource_id: run_id, session_id, run_id, content_type: 'application/json', body };
    return { history, ...(history.length > 0 && { resources: [resource] }), ...(state !== undefined && { state }) };
  }

  /**
   * What a run that repeats another one gets in a session of its own: the messages of the turns before that one, and those
   * that it has read in the repeated part (`marks`); and the state as of now, since earlier ones are not kept.
   */
  async copyExtras(source: RunKey, target: RunKey, marks: readonly HistoryMark[]): Promise<Extras> {
    const { urls, strict } = await this.#historyOf(source);
    const read = Math.max(0, ...marks.map((mark) => extentOf(urls, mark)));
    const id = sessionIdOf(target.session_id);
    const copied: Extras = strict
      ? this.descriptorExtras({ id, history: [...urls] }, target)
      : { history: await this.#before(urls, source.run_id, read) };
    const state = (await this.#store.session(source.session_id))?.state ?? undefined;
    if (state === undefined || isForeign(state)) return { ...copied, ...(state !== undefined && { state }) };
    const [stored] = await this.#resources([state]);
    if (stored === undefined) return copied;
    const own = resourceOf(target.session_id, null, stored.body);
    return { ...copied, resources: [...(copied.resources ?? []), own], state: `${resourcePath}${own.resource_id}` };
  }

  /** The first `read` URLs, and those after them that are not of a run or of later ones. */
  async #before(urls: readonly string[], run_id: string, read: number): Promise<string[]> {
    const later = new Set<string>();
    // A message is stored when its run ends. What was stored before the run began is of an earlier run.
    const unsure = urls.slice(read).filter((url) => !isForeign(url) && url.slice(resourcePath.length) > run_id);
    for (const some of pagesOf(unsure)) {
      const found = await this.#resources(some);
      for (const [index, url] of some.entries()) if ((found[index]?.run_id ?? run_id) >= run_id) later.add(url);
    }
    return urls.filter((url) => !later.has(url));
  }

  /** What a run that ends adds to its session: its input, and what came of it. */
  turnExtras({ session_id, run_id }: RunKey, input: RunInput, run: Run, now: string): Extras {
    return this.messageExtras(session_id, run_id, [...messagesOf(input), ...historyOf(run, now)]);
  }

  /** Messages as resources, and the history entries that point to them. */
  messageExtras(session_id: string, run_id: string, messages: readonly Message[]): Extras {
    const resources = messages.map((message) => resourceOf(session_id, run_id, flat(encodeMessage(message))));
    return { resources, history: resources.map(({ resource_id }) => `${resourcePath}${resource_id}`) };
  }

  /** Any JSON value as the session's state. */
  stateExtras(session_id: string, value: unknown): Extras {
    const resource = resourceOf(session_id, null, JSON.stringify(value) ?? 'null');
    return { resources: [resource], state: `${resourcePath}${resource.resource_id}` };
  }

  /** The messages of a run's session, oldest first; read lazily, in pages. See `historyAt`. */
  history(key: RunKey, signal: AbortSignal): Observable<Message> {
    return defer(() => this.#historyOf(key)).pipe(
      concatMap((reading) =>
        from(pagesOf(reading.urls)).pipe(concatMap((urls) => this.#messages({ ...reading, urls }, signal))),
      ),
      concatMap((messages) => messages),
    );
  }

  /**
   * The messages of a run's session: all of them, or those that an earlier `mark` names. An unreadable message is an error
   * for the run whose request had its URL. Any other run leaves the message out, with a warning in the log. So does a run that
   * has read the message before, because its turn may be deleted meanwhile.
   * @throws RivuletError `resource_refused`
   */
  async historyAt(key: RunKey, mark: HistoryMark | undefined, signal: AbortSignal): Promise<History> {
    const found = await this.#historyOf(key);
    const count = mark === undefined ? found.urls.length : extentOf(found.urls, mark);
    const last = found.urls[count - 1] ?? null;
    const before: string[] = [];
    for (let back = 1; back < count; back *= 2) before.push(...found.urls.slice(count - 1 - back, count - back));
    const again = mark !== undefined;
    const reading = { ...found, without: new Set(mark?.without), strict: found.strict && !again, again };
    const messages: Message[] = [];
    for (const urls of pagesOf(found.urls.slice(0, count))) {
      messages.push(...(await this.#messages({ ...reading, urls }, signal)));
    }
    return { messages, mark: { count, last, before, without: [...reading.without] } };
  }

  /** The session's state, or undefined where none was stored. */
  async state(session_id: string, signal: AbortSignal): Promise<unknown> {
    const row = await this.#store.session(session_id);
    if (row === undefined || row.state === null) return undefined;
    try {
      return await this.#json(row.state, sessionOwnerOf(session_id), signal);
    } catch (error) {
      if ((await this.#store.session(session_id))?.state === row.state) throw error;
      // Another run, or another branch of this one, has replaced it meanwhile.
      return this.state(session_id, signal);
    }
  }

  /** A run whose request had a descriptor reads its history, and fails if it cannot. */
  async #historyOf({ session_id, run_id }: RunKey): Promise<HistoryReading> {
    const [descriptor] = await this.#store.resources([run_id]);
    const without = new Set<string>();
    const owner = sessionOwnerOf(session_id);
    if (descriptor !== undefined)
      return { run_id, owner, urls: JSON.parse(descriptor.body), strict: true, again: false, without };
    const session = await this.#store.session(session_id);
    return { run_id, owner, urls: session?.history ?? [], strict: false, again: false, without };
  }

  /**
   * Reads all messages of this store in one call. Messages of other servers are fetched one by one. Interrupted messages are
   * left out here, for all agents: the session has them for people.
   */
  async #messages(
    { run_id, owner, urls, strict, again, without }: HistoryReading,
    signal: AbortSignal,
  ): Promise<Message[]> {
    const own = urls.filter((url) => !isForeign(url));
    const found = await this.#bodies(own, owner);
    const bodies = new Map(own.map((url, index) => [url, found[index]]));
    const messages: Message[] = [];
    for (const url of urls) {
      if (without.has(url)) continue;
      if (!strict && !again && isForeign(url) && without.size >= maxUnreadable) {
        without.add(url);
        continue;
      }
      try {
        const fetch = (): Promise<string> => (again ? this.#fetchAgain(url, signal) : this.#fetch(url, signal));
        messages.push(this.#message(url, isForeign(url) ? await fetch() : bodies.get(url)));
      } catch (error) {
        if (strict || !isRefused(error) || signal.aborted) throw error;
        without.add(url);
        this.#logFor(run_id).warn(`left out of the session's history: ${error.message}`);
      }
    }
    return messages.filter((message) => !isInterrupted(message));
  }

  /** A run has read the message before, so it waits for a server that is away for a moment. */
  async #fetchAgain(url: string, signal: AbortSignal): Promise<string> {
    let left = maxFetches;
    const again = (error: unknown): boolean => {
      left -= 1;
      return left > 0 && isRefused(error) && !signal.aborted;
    };
    const delay = new Delay();
    const stop = (): void => delay.close();
    signal.addEventListener('abort', stop);
    try {
      return await retry(() => this.#fetch(url, signal), { again, delay });
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /** The resources of this store that some URLs name. */
  #resources(urls: readonly string[]): Promise<(Resource | undefined)[]> {
    return this.#store.resources(urls.map((url) => url.slice(resourcePath.length)));
  }

  /** Resources that a client's descriptor named may be another owner's: they are as good as removed. */
  async #bodies(urls: readonly string[], owner: string | null): Promise<(string | undefined)[]> {
    const found = urls.length === 0 ? [] : await this.#resources(urls);
    return found.map((one) => (one !== undefined && sessionOwnerOf(one.session_id) === owner ? one.body : undefined));
  }

  #message(url: string, body: string | undefined): Message {
    const value = parse(url, body);
    try {
      return receiveMessage(this.#checkMessage(value), 'message', new Date().toISOString());
    } catch (error) {
      throw fail('resource_refused', url, `it is not a message: ${reasonOf(error).replace(/\.$/, '')}`);
    }
  }

  async #json(url: string, owner: string | null, signal: AbortSignal): Promise<unknown> {
    const body = isForeign(url) ? await this.#fetch(url, signal) : (await this.#bodies([url], owner))[0];
    return parse(url, body);
  }

  #absolute(url: string): string {
    return url.startsWith('/') ? `${this.#publicUrl()}${url}` : url;
  }

  #relative(url: string): string {
    const own = `${this.#publicUrl()}${resourcePath}`;
    return url.startsWith(own) ? url.slice(this.#publicUrl().length) : url;
  }
}

function parse(url: string, body: string | undefined): unknown {
  if (body === undefined) throw fail('resource_refused', url, 'it is no longer kept here');
  try {
    return JSON.parse(body);
  } catch {
    throw fail('resource_refused', url, 'it is not JSON');
  }
}

/** How many of the URLs an earlier reading had. Those of turns that were deleted since are gone. */
function extentOf(urls: readonly string[], { count, last, before = [] }: HistoryMark): number {
  for (const url of last === null ? [] : [last, ...before]) {
    const at = urls.lastIndexOf(url, count - 1);
    if (at >= 0) return at + 1;
  }
  return 0;
}

function* pagesOf(urls: readonly string[]): Generator<readonly string[]> {
  for (let at = 0; at < urls.length; at += pageSize) yield urls.slice(at, at + pageSize);
}

const isForeign = (url: string): boolean => !url.startsWith(resourcePath);

const isRefused = (error: unknown): error is RivuletError =>
  error instanceof RivuletError && error.kind === 'resource_refused';

const resourceOf = (session_id: string, run_id: string | null, body: string): Resource => ({
  resource_id: newIdBeside(session_id),
  session_id,
  run_id,
  content_type: 'application/json',
  body,
});
