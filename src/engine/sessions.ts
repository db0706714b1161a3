import { concatMap, defer, from, type Observable } from 'rxjs';
import type { AgentLog } from '../core/agent.ts';
import { fail, RivuletError } from '../core/errors.ts';
import { reasonOf } from '../core/json.ts';
import { receiveMessage } from '../core/messages.ts';
import type { Extras, Resource, RunRow, Store } from '../core/store.ts';
import { compile, type Validator } from '../core/validate.ts';
import { type Message, MessageInput } from '../schema/message.ts';
import type { Session, SessionInput } from '../schema/session.ts';
import { newId } from './ids.ts';

/** Reads a resource of another server; rejects with a reason that may be told. Guarded: see `http/foreign`. */
export type FetchResource = (url: string, signal: AbortSignal) => Promise<string>;

const resourcePath = '/resources/';
/** Messages that are read from the store at once. */
const pageSize = 100;
/** A resource of some server of this kind; its id says whether it is kept here. */
const anyResource = /^https?:\/\/.*\/resources\/([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/;
/** URLs of other servers in one session: an agent that reads the history makes a request for each. */
const maxForeign = 1_000;
/** Entries of a history that are answered, the newest ones: a session may go on for years. */
const maxListedMessages = 10_000;
/** Messages that one run finds unreadable until it asks other servers for no more. */
const maxUnreadable = 10;

/** Which session, and which of its runs asks. */
type RunKey = Pick<RunRow, 'session_id' | 'run_id'>;

/** How much of a history there was: the number of its messages, the last one's URL, and those that were left out. */
export interface HistoryMark {
  readonly count: number;
  readonly last: string | null;
  readonly without: readonly string[];
}

export interface History {
  readonly messages: readonly Message[];
  readonly mark: HistoryMark;
}

/** The URLs of a history, and what becomes of those that cannot be read: an error, or they are added to `without`. */
interface HistoryReading {
  readonly run_id: string;
  readonly urls: readonly string[];
  readonly strict: boolean;
  readonly without: Set<string>;
}

/** Sessions as the wire has them: histories of URLs, whether their messages are kept here or elsewhere. */
export class Sessions {
  readonly #store: Store;
  readonly #fetch: FetchResource;
  readonly #publicUrl: () => string;
  readonly #logFor: (run_id: string) => AgentLog;
  readonly #checkMessage: Validator<MessageInput> = compile(MessageInput, 'message');

  /** `publicUrl` is asked late, since a server on port 0 knows its own address only once it listens. */
  constructor(store: Store, fetch: FetchResource, publicUrl: () => string, logFor: (run_id: string) => AgentLog) {
    this.#store = store;
    this.#fetch = fetch;
    this.#publicUrl = publicUrl;
    this.#logFor = logFor;
  }

  /** The session with the newest 10,000 URLs of its history. @throws RivuletError `session_unknown` */
  async describe(session_id: string): Promise<Session> {
    const row = await this.#store.session(session_id);
    if (row === undefined) throw fail('session_unknown', session_id);
    return {
      id: row.session_id,
      history: row.history.slice(-maxListedMessages).map((url) => this.#absolute(url)),
      ...(row.state !== null && { state: this.#absolute(row.state) }),
    };
  }

  /**
   * A client's descriptor, in which URLs of resources that are kept here are paths: moving house is free, and nodes
   * that share a store under several addresses do not double its history.
   * @throws RivuletError `validation_failed` where the session would have too many URLs of other servers
   */
  async receiveDescriptor({ history = [], state, ...rest }: SessionInput, session_id: string): Promise<SessionInput> {
    const ids = history.map((url) => anyResource.exec(url)?.[1]);
    const asked = ids.filter((id) => id !== undefined);
    const kept = asked.length === 0 ? [] : await this.#store.resources(asked);
    const own = new Set(kept.flatMap((one) => (one?.session_id === session_id ? [one.resource_id] : [])));
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
   * What a descriptor adds to its session. The history that it has, if any, is what this run reads, whatever the
   * session has besides; it is kept with the run, under the run's id.
   */
  descriptorExtras({ history = [], state }: SessionInput, { session_id, run_id }: RunKey): Extras {
    const body = JSON.stringify(history);
    const resource = { resource_id: run_id, session_id, run_id, content_type: 'application/json', body };
    return { history, ...(history.length > 0 && { resources: [resource] }), ...(state !== undefined && { state }) };
  }

  /** Messages as resources, and the history entries that point to them. */
  messageExtras(session_id: string, run_id: string, messages: readonly Message[]): Extras {
    const resources = messages.map((message) => resourceOf(session_id, run_id, message));
    return { resources, history: resources.map(({ resource_id }) => `${resourcePath}${resource_id}`) };
  }

  /** Any JSON value as the session's state. */
  stateExtras(session_id: string, value: unknown): Extras {
    const resource = resourceOf(session_id, null, value);
    return { resources: [resource], state: `${resourcePath}${resource.resource_id}` };
  }

  /**
   * The messages that a run finds in its session, oldest first; read in pages, when their turn comes. See `historyAt`.
   */
  history(place: RunKey, signal: AbortSignal): Observable<Message> {
    return defer(() => this.#historyOf(place)).pipe(
      concatMap((reading) =>
        from(pagesOf(reading.urls)).pipe(concatMap((urls) => this.#messages({ ...reading, urls }, signal))),
      ),
      concatMap((messages) => messages),
    );
  }

  /**
   * The messages that a run finds in its session as they are now, or with a mark, as they were when it was made: a
   * history only grows. A message that cannot be read fails the run that brought its URL, and is left out for all
   * others, with a warning in the log.
   * @throws RivuletError `resource_refused`
   */
  async historyAt(place: RunKey, mark: HistoryMark | undefined, signal: AbortSignal): Promise<History> {
    const found = await this.#historyOf(place);
    const count = mark?.count ?? found.urls.length;
    const last = found.urls[count - 1] ?? null;
    if (mark !== undefined && mark.last !== last)
      throw fail('resource_refused', mark.last ?? 'history', 'the history of the session was changed since');
    const without = new Set(mark?.without);
    const reading = { ...found, without, strict: found.strict || mark !== undefined };
    const messages: Message[] = [];
    for (const urls of pagesOf(found.urls.slice(0, count))) {
      messages.push(...(await this.#messages({ ...reading, urls }, signal)));
    }
    return { messages, mark: { count, last, without: [...without] } };
  }

  /** The session's state, or undefined where none was stored. */
  async state(session_id: string, signal: AbortSignal): Promise<unknown> {
    const row = await this.#store.session(session_id);
    return row === undefined || row.state === null ? undefined : this.#json(row.state, signal);
  }

  /** A run that brought a descriptor reads that one's history, and fails where it cannot. */
  async #historyOf({ session_id, run_id }: RunKey): Promise<HistoryReading> {
    const [descriptor] = await this.#store.resources([run_id]);
    const without = new Set<string>();
    if (descriptor !== undefined) return { run_id, urls: JSON.parse(descriptor.body), strict: true, without };
    const session = await this.#store.session(session_id);
    return { run_id, urls: session?.history ?? [], strict: false, without };
  }

  /** One question to the store for all messages that are kept here; those elsewhere are fetched one by one. */
  async #messages({ run_id, urls, strict, without }: HistoryReading, signal: AbortSignal): Promise<Message[]> {
    const own = urls.filter((url) => !isForeign(url));
    const resources =
      own.length === 0 ? [] : await this.#store.resources(own.map((url) => url.slice(resourcePath.length)));
    const bodies = new Map(own.map((url, index) => [url, resources[index]?.body]));
    const messages: Message[] = [];
    for (const url of urls) {
      if (without.has(url)) continue;
      if (!strict && isForeign(url) && without.size >= maxUnreadable) {
        without.add(url);
        continue;
      }
      try {
        messages.push(this.#message(url, isForeign(url) ? await this.#fetch(url, signal) : bodies.get(url)));
      } catch (error) {
        if (strict || !isRefused(error) || signal.aborted) throw error;
        without.add(url);
        this.#logFor(run_id).warn(`left out of the session's history: ${error.message}`);
      }
    }
    return messages;
  }

  #message(url: string, body: string | undefined): Message {
    const value = parse(url, body);
    try {
      return receiveMessage(this.#checkMessage(value), 'message', new Date().toISOString());
    } catch (error) {
      throw fail('resource_refused', url, `it is no message: ${reasonOf(error).replace(/\.$/, '')}`);
    }
  }

  async #json(url: string, signal: AbortSignal): Promise<unknown> {
    const body = url.startsWith(resourcePath)
      ? (await this.#store.resources([url.slice(resourcePath.length)]))[0]?.body
      : await this.#fetch(url, signal);
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

function* pagesOf(urls: readonly string[]): Generator<readonly string[]> {
  for (let at = 0; at < urls.length; at += pageSize) yield urls.slice(at, at + pageSize);
}

const isForeign = (url: string): boolean => !url.startsWith(resourcePath);

const isRefused = (error: unknown): error is RivuletError =>
  error instanceof RivuletError && error.kind === 'resource_refused';

function resourceOf(session_id: string, run_id: string | null, value: unknown): Resource {
  const body = JSON.stringify(value) ?? 'null';
  return { resource_id: newId(), session_id, run_id, content_type: 'application/json', body };
}
