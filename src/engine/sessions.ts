import { concatMap, defer, type Observable } from 'rxjs';
import { fail } from '../core/errors.ts';
import { receiveMessage } from '../core/messages.ts';
import type { Extras, Resource, Store } from '../core/store.ts';
import { compile, type Validator } from '../core/validate.ts';
import { type Message, MessageInput } from '../schema/message.ts';
import type { Session, SessionInput } from '../schema/session.ts';
import { newId } from './ids.ts';

/** Reads a resource of another server; rejects with a reason that may be told. Guarded: see `http/foreign`. */
export type FetchResource = (url: string, signal: AbortSignal) => Promise<string>;

const prefix = '/resources/';
/** Messages that are read from the store at once. */
const pageSize = 100;

/** How much of a session's history there was: the number of its messages, and the last one's URL. */
export interface HistoryMark {
  readonly count: number;
  readonly last: string | null;
}

export interface History {
  readonly messages: readonly Message[];
  readonly mark: HistoryMark;
}

/** Sessions as the wire has them: histories of URLs, whether their messages are kept here or elsewhere. */
export class Sessions {
  readonly #store: Store;
  readonly #fetch: FetchResource;
  readonly #publicUrl: () => string;
  readonly #checkMessage: Validator<MessageInput> = compile(MessageInput, 'message');

  /** `publicUrl` is asked late, since a server on port 0 knows its own address only once it listens. */
  constructor(store: Store, fetch: FetchResource, publicUrl: () => string) {
    this.#store = store;
    this.#fetch = fetch;
    this.#publicUrl = publicUrl;
  }

  /** @throws RivuletError `session_unknown` */
  async describe(session_id: string): Promise<Session> {
    const row = await this.#store.session(session_id);
    if (row === undefined) throw fail('session_unknown', session_id);
    return {
      id: row.session_id,
      history: row.history.map((url) => this.#absolute(url)),
      ...(row.state !== null && { state: this.#absolute(row.state) }),
    };
  }

  /** What a client's descriptor adds to a session; URLs of our own become paths, so that moving house is free. */
  adopt(session: SessionInput | undefined): Extras {
    if (session === undefined) return { history: [] };
    return {
      history: (session.history ?? []).map((url) => this.#relative(url)),
      ...(session.state !== undefined && { state: this.#relative(session.state) }),
    };
  }

  /** Messages as resources, and the history entries that point to them. */
  store(session_id: string, run_id: string, messages: readonly Message[]): Extras {
    const resources = messages.map((message) => resourceOf(session_id, run_id, message));
    return { resources, history: resources.map(({ resource_id }) => `${prefix}${resource_id}`) };
  }

  /** Any JSON value as the session's state. */
  storeState(session_id: string, value: unknown): Extras {
    const resource = resourceOf(session_id, null, value);
    return { resources: [resource], state: `${prefix}${resource.resource_id}` };
  }

  /** The session's messages, oldest first; read in pages, when their turn comes. */
  history(session_id: string, signal: AbortSignal): Observable<Message> {
    return defer(() => this.#store.session(session_id)).pipe(
      concatMap((row) => pagesOf(row?.history ?? [])),
      concatMap((urls) => this.#messages(urls, signal)),
      concatMap((messages) => messages),
    );
  }

  /**
   * The session's messages as they are now, or with a mark, as they were when it was made: a history only grows.
   * @throws RivuletError `resource_refused`
   */
  async historyAt(session_id: string, mark: HistoryMark | undefined, signal: AbortSignal): Promise<History> {
    const urls = (await this.#store.session(session_id))?.history ?? [];
    const count = mark?.count ?? urls.length;
    const last = urls[count - 1] ?? null;
    if (mark !== undefined && mark.last !== last)
      throw fail('resource_refused', mark.last ?? 'history', 'the history of the session was changed since');
    const messages: Message[] = [];
    for (const page of pagesOf(urls.slice(0, count))) messages.push(...(await this.#messages(page, signal)));
    return { messages, mark: { count, last } };
  }

  /** The session's state, or undefined where none was stored. */
  async state(session_id: string, signal: AbortSignal): Promise<unknown> {
    const row = await this.#store.session(session_id);
    return row === undefined || row.state === null ? undefined : this.#json(row.state, signal);
  }

  /** One question to the store for all messages that are kept here; those elsewhere are fetched one by one. */
  async #messages(urls: readonly string[], signal: AbortSignal): Promise<Message[]> {
    const own = urls.filter((url) => url.startsWith(prefix));
    const resources = own.length === 0 ? [] : await this.#store.resources(own.map((url) => url.slice(prefix.length)));
    const bodies = new Map(own.map((url, index) => [url, resources[index]?.body]));
    const messages: Message[] = [];
    for (const url of urls) {
      const body = url.startsWith(prefix) ? bodies.get(url) : await this.#fetch(url, signal);
      messages.push(receiveMessage(this.#checkMessage(parse(url, body)), url, new Date().toISOString()));
    }
    return messages;
  }

  async #json(url: string, signal: AbortSignal): Promise<unknown> {
    const body = url.startsWith(prefix)
      ? (await this.#store.resources([url.slice(prefix.length)]))[0]?.body
      : await this.#fetch(url, signal);
    return parse(url, body);
  }

  #absolute(url: string): string {
    return url.startsWith('/') ? `${this.#publicUrl()}${url}` : url;
  }

  #relative(url: string): string {
    const own = `${this.#publicUrl()}${prefix}`;
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

function resourceOf(session_id: string, run_id: string | null, value: unknown): Resource {
  const body = JSON.stringify(value) ?? 'null';
  return { resource_id: newId(), session_id, run_id, content_type: 'application/json', body };
}
