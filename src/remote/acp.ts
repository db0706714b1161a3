import { concatMap, defer, EMPTY, from, lastValueFrom, type Observable, of } from 'rxjs';
import { type Client, ClientError, createClient } from '../client/client.ts';
import type { AgentContext, AgentManifestInput } from '../core/agent.ts';
import { AgentError } from '../core/errors.ts';
import { callOf } from '../core/parts.ts';
import type { Event } from '../schema/event.ts';
import type { Message, MessageInput } from '../schema/message.ts';
import { type Connection, tooLargeIn } from './connection.ts';
import { type Piece, type RemoteAgent, type RemoteCall, type RemoteRun, reasonField, usageIn } from './remote-run.ts';

/** An agent of a server that speaks ACP; `url` is the server's. */
export function acpAgent(connection: Connection, url: string, agent: string): RemoteAgent {
  const clientFor = (context?: AgentContext): Client =>
    createClient({
      url,
      fetch: connection.fetch,
      timeout: connection.idleTimeout,
      headers: () => connection.headers(context),
      reconnect: {
        retries: connection.retries,
        firstRetries: connection.retries,
        minDelay: connection.delay,
        idleTimeout: connection.idleTimeout,
      },
    });
  return {
    manifest: async (): Promise<AgentManifestInput> => {
      const { status: _, ...manifest } = await clientFor().agent(agent);
      return manifest;
    },
    run: (call) => new AcpRun(connection, clientFor(call.context), agent, call),
  };
}

/** A run of another server, by its events. */
class AcpRun implements RemoteRun {
  readonly #connection: Connection;
  readonly #client: Client;
  readonly #agent: string;
  readonly #call: RemoteCall;
  /** While the run is made, and then its id. */
  #id: Promise<string> | undefined;
  #at = 0;

  constructor(connection: Connection, client: Client, agent: string, call: RemoteCall) {
    this.#connection = connection;
    this.#client = client;
    this.#agent = agent;
    this.#call = call;
  }

  begin(): Observable<Piece> {
    return defer(() => {
      // Not aborted with the subscription: a cancel needs the id of a run that may be made already.
      this.#id = this.#create();
      return this.#id;
    }).pipe(
      this.#connection.retrying(isRetryable),
      concatMap((id) => from([of<Piece>({ type: 'run', id }), this.#events(id)]).pipe(concatMap((pieces) => pieces))),
    );
  }

  async #create(): Promise<string> {
    const { input, key, session } = this.#call;
    const options = { session_id: session, idempotency_key: key };
    return (await this.#client.start(this.#agent, input.map(plain), options)).run_id;
  }

  follow(): Observable<Piece> {
    return defer(() => this.#known()).pipe(concatMap((id) => this.#events(id)));
  }

  reply(message: Message): Observable<Piece> {
    // The number of the question: a reply that is sent twice answers one question.
    const idempotency_key = `${this.#call.key}-${this.#at}`;
    const resume = async (): Promise<string> => {
      const id = await this.#known();
      await this.#client.resume(id, plain(message), { idempotency_key, channel: 'agent' });
      return id;
    };
    return defer(resume).pipe(
      this.#connection.retrying(isRetryable),
      concatMap((id) => this.#events(id)),
    );
  }

  onPiece({ at, ...piece }: Piece): void {
    if (at !== undefined) this.#at = Number(at);
    if (piece.type === 'run') this.#id = Promise.resolve(piece.id);
  }

  async cancel(): Promise<void> {
    if (this.#id === undefined) return;
    const cancelled = async (): Promise<void> => {
      // The run may have been made although its answer was lost: repeated, with the same key, it is the same run.
      const id = await this.#id?.catch((error) => (isRetryable(error) ? this.#create() : undefined));
      if (id !== undefined) await this.#client.cancel(id);
    };
    await lastValueFrom(defer(cancelled).pipe(this.#connection.retrying(isRetryable)));
  }

  errorOf(thrown: unknown): unknown {
    if (!(thrown instanceof ClientError)) return thrown;
    const tooLarge = tooLargeIn(thrown);
    if (tooLarge !== undefined) return tooLarge;
    const { status, code, message, data } = thrown;
    if (thrown.retryable) return new AgentError('remote_unreachable', 'The remote agent does not answer.');
    return new AgentError('remote_refused', message, { status, code, data });
  }

  /** The events after the last piece, until the run is settled. */
  #events(id: string): Observable<Piece> {
    return defer(() => {
      const after = this.#at;
      // The nth event after a cursor has its number plus n.
      return this.#client
        .watch(id, { after, until: 'settled' })
        .pipe(concatMap((event, index) => piecesOf(event, String(after + index + 1))));
    });
  }

  #known(): Promise<string> {
    return this.#id ?? Promise.reject(new AgentError('remote_unknown', 'The remote run was never made.'));
  }
}

const isRetryable = (error: unknown): boolean => error instanceof ClientError && error.retryable;

/** A message without its times: a request that is repeated after a crash has to be the same. */
const plain = ({ role, parts }: Message): MessageInput => ({ role, parts });

function piecesOf(event: Event, at: string): Observable<Piece> {
  switch (event.type) {
    case 'message.part':
      return of({ type: 'part', part: event.part, at });
    case 'message.completed':
      return of({ type: 'end-of-message', ...reasonField(event.message.finish_reason), at });
    case 'generic':
      // The path of a call begins at the remote run, and not at this one.
      return callOf(event.generic) === undefined ? of({ type: 'generic', event, at }) : EMPTY;
    case 'run.awaiting': {
      const { await_request: request } = event.run;
      if (request === undefined)
        throw new AgentError('remote_invalid', 'The remote agent awaits a reply, and has sent no question.');
      return of({ type: 'question', id: at, request, at });
    }
    case 'run.completed': {
      const usage = usageIn(event.run.usage);
      return of({ type: 'completed', ...(usage && { usage }), at });
    }
    case 'run.failed': {
      const { error = { code: 'server_error' as const, message: 'The remote run failed.' } } = event.run;
      const usage = usageIn(event.run.usage);
      return of({ type: 'failed', error, ...(usage && { usage }), at });
    }
    case 'run.cancelled': {
      const message = 'The remote run was cancelled on its own server.';
      return of({ type: 'failed', error: { code: 'server_error', message, data: { code: 'remote_cancelled' } }, at });
    }
    case 'message.created':
    case 'run.created':
    case 'run.in-progress':
    case 'error':
      return EMPTY;
    default:
      // A newer server may have more types.
      event satisfies never;
      return EMPTY;
  }
}
