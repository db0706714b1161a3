import { AsyncLocalStorage } from 'node:async_hooks';
import type { Client, StreamableHTTPClientTransportOptions, Tool, Transport } from '@modelcontextprotocol/client';
import type { AgentContext } from '../core/agent.ts';
import { isObject } from '../core/json.ts';
import { linked } from '../core/timing.ts';
import { version } from '../http/version.ts';
import { type Connection, optional, Unreachable } from './connection.ts';

/** A server that runs as a child process, as the configuration files of hosts name it. */
export interface McpCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to the few variables that a child process gets by default, such as `PATH`. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** What a server asks the user for. */
export interface Elicitation {
  readonly message: string;
  readonly schema?: Record<string, unknown>;
}

type Elicit = (asked: Elicitation) => Promise<Record<string, unknown> | undefined>;

interface OpenCall {
  readonly connection: McpConnection;
  /** The call of another connection in which this one is made. */
  readonly outer: OpenCall | undefined;
  readonly context: AgentContext | undefined;
  readonly elicit: Elicit;
  /** The stream of the call is broken for good. The SDK would wait for the result until the time-out. */
  readonly lose: (error: Error) => void;
  /** Fires when the call has ended; undefined for the requests that open the connection. */
  readonly ended: AbortSignal | undefined;
}

const load = () => optional('@modelcontextprotocol/client', () => import('@modelcontextprotocol/client'));
type Sdk = Awaited<ReturnType<typeof load>>;

export interface Opened {
  readonly sdk: Sdk;
  readonly client: Client;
}

/**
 * The call in which a request is made: the headers of the request come from the context of the call. All connections share one
 * storage, because up to Node 22 each storage that was used slows down every promise of the process.
 */
const currentCall = new AsyncLocalStorage<OpenCall>();

/** One connection to an MCP server. It is opened by the first call, shared by all, and opened again after it has closed. */
export class McpConnection {
  readonly #server: string | McpCommand;
  readonly #connection: Connection;
  /** All open calls: in the older versions, a question does not say which call it belongs to. */
  readonly #calls = new Set<OpenCall>();
  readonly #timeout: number;
  #opened: Promise<Opened> | undefined;
  /** That of the connection that was opened last, also while the server has not answered yet. */
  #transport: Transport | undefined;

  /** `timeout`: milliseconds for each answer until the connection is open, and for a list of tools. */
  constructor(server: string | McpCommand, connection: Connection, timeout: number) {
    this.#server = server;
    this.#connection = connection;
    this.#timeout = timeout;
  }

  open(): Promise<Opened> {
    const opened = this.#opened ?? this.#begin();
    this.#opened = opened;
    opened.catch(() => this.#forget(opened));
    return opened;
  }

  /** The connection outlives the call that opens it. */
  #begin(): Promise<Opened> {
    const call = this.#ownCall();
    if (call === undefined) return this.#connect();
    return currentCall.run({ ...call, lose: () => {}, ended: undefined }, () => this.#connect());
  }

  async tools(): Promise<Tool[]> {
    return (await (await this.open()).client.listTools(undefined, { timeout: this.#timeout })).tools;
  }

  /** Does a call's work. `elicit` gets what the server asks meanwhile. */
  during<T>(context: AgentContext | undefined, elicit: Elicit, work: (opened: Opened) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const end = new AbortController();
      const { signal: ended } = end;
      const call: OpenCall = { connection: this, outer: currentCall.getStore(), context, elicit, lose: reject, ended };
      this.#calls.add(call);
      currentCall
        .run(call, async () => work(await this.open()))
        .finally(() => this.#calls.delete(call))
        .then(resolve, reject)
        .finally(() => end.abort());
    });
  }

  /** Ends the session, or the child process. The next call opens the connection again. */
  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    // A server that does not answer is not waited for.
    await this.#transport?.close();
    const { client } = (await opened?.catch(() => undefined)) ?? {};
    await client?.close();
  }

  async #connect(): Promise<Opened> {
    const sdk = await load();
    const client = new sdk.Client(
      { name: 'rivulet', version: version() },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } },
    );
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      const schema = 'requestedSchema' in params ? params.requestedSchema : undefined;
      // With several open calls it is not known which one asks.
      const [call, ...others] = this.#calls;
      if (call === undefined || others.length > 0) return { action: 'decline' };
      const content = await call.elicit(elicitationOf(params.message, schema));
      return content === undefined ? { action: 'decline' } : { action: 'accept', content: plain(content) };
    });
    const opened = { sdk, client };
    client.onclose = () => this.#forget();
    this.#transport = await this.#transportTo(sdk);
    await client.connect(this.#transport, { timeout: this.#timeout });
    return opened;
  }

  async #transportTo(sdk: Sdk): Promise<Transport> {
    if (typeof this.#server === 'string') {
      const url = new URL(this.#server);
      return new sdk.StreamableHTTPClientTransport(url, { fetch: this.#fetchOf(url), ...this.#reconnection() });
    }
    const stdio = await import('@modelcontextprotocol/client/stdio');
    const { command, args = [], env, cwd } = this.#server;
    return new stdio.StdioClientTransport({
      command,
      args: [...args],
      env: { ...stdio.getDefaultEnvironment(), ...env },
      ...(cwd !== undefined && { cwd }),
      stderr: 'ignore',
    });
  }

  /**
   * An answer to a call is left when the call ends, and any other answer after the time-out; only the stream on which the
   * server sends what belongs to no call stays open. A server that refuses to continue a stream does not have the call any more.
   */
  #fetchOf(url: URL): typeof globalThis.fetch {
    return async (input, init) => {
      const call = this.#ownCall();
      const left = isNotification(init) ? undefined : call?.ended;
      const limit = left ?? (init?.method === 'POST' ? AbortSignal.timeout(this.#timeout) : undefined);
      const fetch = this.#connection.fetchFor(call?.context, url.origin);
      const response = await fetch(input, { ...init, signal: endedBy(init?.signal ?? undefined, limit) });
      const { status } = response;
      const isGone = status >= 400 && status < 500 && status !== 408 && status !== 429;
      if (isGone && new Headers(init?.headers).has('last-event-id')) {
        call?.lose(new Unreachable(`its stream could not be continued: ${status}`));
      }
      return response;
    };
  }

  /** The attempts of `ConnectionOptions`. The SDK would make two, which are over before a server has restarted. */
  #reconnection(): Pick<StreamableHTTPClientTransportOptions, 'reconnectionOptions' | 'reconnectionScheduler'> {
    const { delay, retries } = this.#connection;
    return {
      reconnectionOptions: {
        initialReconnectionDelay: delay,
        reconnectionDelayGrowFactor: 2,
        maxReconnectionDelay: 30_000,
        maxRetries: Number.POSITIVE_INFINITY,
      },
      reconnectionScheduler: (reconnect, wait, attempt) => {
        const call = this.#ownCall();
        if (call?.ended?.aborted) return;
        if (attempt >= retries) return call?.lose(new Unreachable('its stream broke'));
        const timer = setTimeout(reconnect, wait);
        return () => clearTimeout(timer);
      },
    };
  }

  /** The innermost call of this connection: while a call asks, the agent may call tools of another connection. */
  #ownCall(): OpenCall | undefined {
    let call = currentCall.getStore();
    while (call !== undefined && call.connection !== this) call = call.outer;
    return call;
  }

  #forget(opened = this.#opened): void {
    if (this.#opened === opened) this.#opened = undefined;
  }
}

/** A signal for one request: it fires with the signal of its connection, or with the limit of the request. */
function endedBy(connection: AbortSignal | undefined, limit: AbortSignal | undefined): AbortSignal | null {
  if (limit === undefined) return connection ?? null;
  const { signal, abort, unlink } = linked(connection);
  const end = (): void => {
    unlink();
    abort(limit.reason);
  };
  limit.addEventListener('abort', end, { once: true });
  if (limit.aborted) end();
  return signal;
}

/** Whether a request has no answer that a call waits for. The server learns by a notification that a call was cancelled. */
const isNotification = (init: RequestInit | undefined): boolean =>
  typeof init?.body === 'string' && JSON.parse(init.body).id === undefined;

export const elicitationOf = (message: string, schema: unknown): Elicitation => ({
  message,
  ...(isObject(schema) && { schema }),
});

/** The values that a reply to a server may have. */
export function plain(content: Record<string, unknown>): Record<string, string | number | boolean | string[]> {
  return JSON.parse(JSON.stringify(content));
}
