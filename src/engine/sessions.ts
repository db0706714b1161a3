import { concatMap, defer, from, type Observable } from 'rxjs';
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

  /** The session's messages, oldest first; each is read when its turn comes. */
  history(session_id: string, signal: AbortSignal): Observable<Message> {
    return defer(() => this.#store.session(session_id)).pipe(
      concatMap((row) => row?.history ?? []),
      concatMap((url) => from(this.#message(url, signal))),
    );
  }

  /** The session's state, or undefined where none was stored. */
  async state(session_id: string, signal: AbortSignal): Promise<unknown> {
    const row = await this.#store.session(session_id);
    return row === undefined || row.state === null ? undefined : this.#json(row.state, signal);
  }

  async #message(url: string, signal: AbortSignal): Promise<Message> {
    const message = this.#checkMessage(await this.#json(url, signal));
    return receiveMessage(message, url, new Date().toISOString());
  }

  async #json(url: string, signal: AbortSignal): Promise<unknown> {
    const body = url.startsWith(prefix)
      ? (await this.#store.resources([url.slice(prefix.length)]))[0]?.body
      : await this.#fetch(url, signal);
    if (body === undefined) throw fail('resource_refused', url, 'it is no longer kept here');
    try {
      return JSON.parse(body);
    } catch {
      throw fail('resource_refused', url, 'it is not JSON');
    }
  }

  #absolute(url: string): string {
    return url.startsWith('/') ? `${this.#publicUrl()}${url}` : url;
  }

  #relative(url: string): string {
    const own = `${this.#publicUrl()}${prefix}`;
    return url.startsWith(own) ? url.slice(this.#publicUrl().length) : url;
  }
}

function resourceOf(session_id: string, run_id: string | null, value: unknown): Resource {
  const body = JSON.stringify(value) ?? 'null';
  return { resource_id: newId(), session_id, run_id, content_type: 'application/json', body };
}
