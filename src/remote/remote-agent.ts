import { createHash } from 'node:crypto';
import { catchError, concat, concatMap, defer, EMPTY, Observable, switchMap, tap } from 'rxjs';
import {
  type Agent,
  type AgentContext,
  type AgentManifestInput,
  type AgentOptions,
  type AgentOutput,
  defineAgent,
} from '../core/agent.ts';
import { agentErrorOf, errorOf } from '../core/errors.ts';
import { isPlainText } from '../core/media-types.ts';
import { endOfMessage } from '../core/parts.ts';
import { sessionIdFor } from '../engine/ids.ts';
import type { Message } from '../schema/message.ts';
import { acpAgent } from './acp.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import { checkPiece, type Piece, type RemoteAgent, type RemoteRun } from './remote-run.ts';

export type { ConnectionOptions, FromContext } from './connection.ts';

export interface RemoteAgentOptions extends ConnectionOptions, AgentOptions {
  /** Default: `acp` for a URL that ends in `/agents/NAME`, or with the option `agent`; otherwise `a2a`. */
  readonly protocol?: 'acp' | 'a2a';
  /** The name of the agent on its server, where the URL does not have it. ACP only. */
  readonly agent?: string;
  /**
   * What differs from the remote agent's own manifest. With a `name` and a `description`, the other server is not asked
   * before the first run, so that this server starts without it.
   */
  readonly manifest?: Partial<AgentManifestInput>;
  /** The session of the other server. Default: a UUID of its own for each session of this server and each URL. */
  readonly session?: (context: AgentContext) => string;
}

/**
 * An agent of another server, as an agent of this one. Its output, questions, errors and usage are those of the remote
 * run. The remote run is cancelled when this one ends early. In a durable run it is made once, and after a crash
 * its stream continues.
 * @throws AgentError where the other server cannot be asked for its manifest
 */
export async function remoteAgent(url: string, options: RemoteAgentOptions = {}): Promise<Agent> {
  const { protocol, agent, manifest, session, token, headers, allowNetworks, ...rest } = options;
  const { idleTimeout, retries, delay, ...agentOptions } = rest;
  const remote = await openRemote(url, options);
  const isWhole = manifest?.name !== undefined && manifest.description !== undefined;
  const own = isWhole ? { name: '', description: '' } : await remote.manifest();
  const sessionOf = session ?? (({ session: { id } }: AgentContext) => sessionIdFor(`remote ${url} ${id}`));
  return defineAgent(
    { ...own, ...manifest },
    (input, context) =>
      new Observable((subscriber) => {
        const key = keyOf(url, input, context);
        const run = remote.run({ context, input, key, session: sessionOf(context) });
        return new Call(run, context).output().subscribe(subscriber);
      }),
    agentOptions,
  );
}

/** The name of an agent at the end of its URL. */
const inUrl = /\/agents\/([^/]+)\/?$/;

async function openRemote(url: string, options: RemoteAgentOptions): Promise<RemoteAgent> {
  const connection = new Connection(options);
  const { pathname } = new URL(url);
  const name = options.agent ?? inUrl.exec(pathname)?.[1];
  const { protocol = name === undefined ? 'a2a' : 'acp' } = options;
  if (protocol === 'a2a') return (await import('./a2a.ts')).a2aAgent(connection, url);
  if (name === undefined)
    throw new TypeError(`expected a URL that ends in /agents/NAME, or the option agent; got ${url}`);
  return acpAgent(connection, options.agent === undefined ? url.replace(inUrl, '/') : url, name);
}

/** The key of a call: the same after a crash, when the run makes the same calls again. */
function keyOf(url: string, input: readonly Message[], { run_id, agent_name, path }: AgentContext): string {
  const said = input.map(({ role, parts }) => ({ role, parts }));
  return createHash('sha256')
    .update(JSON.stringify([run_id, url, agent_name, path, said]))
    .digest('hex');
}

/** One call of a remote agent. */
class Call {
  readonly #run: RemoteRun;
  readonly #context: AgentContext;
  #ended = false;

  constructor(run: RemoteRun, context: AgentContext) {
    this.#run = run;
    this.#context = context;
  }

  output(): Observable<AgentOutput> {
    return new Observable((subscriber) => {
      const { signal } = this.#context;
      const following = this.#stretch(() => this.#run.begin()).subscribe(subscriber);
      // Nothing unsubscribes from this when the run leaves the process.
      const leave = (): void => following.unsubscribe();
      signal.addEventListener('abort', leave);
      following.add(() => {
        signal.removeEventListener('abort', leave);
        void Promise.resolve().then(() => this.#left());
      });
      return following;
    });
  }

  /** The remote run until it ends or asks; then again with the reply. */
  #stretch(begin: () => Observable<Piece>): Observable<AgentOutput> {
    let question: Extract<Piece, { type: 'question' }> | undefined;
    const context = this.#context;
    const guarded = (work: () => Observable<Piece>): Observable<Piece> =>
      defer(work).pipe(
        tap(checkPiece),
        catchError((error) => {
          context.log.warn(`the remote run: ${errorOf(error).message}`);
          throw this.#run.errorOf(error);
        }),
      );
    const pieces = context.step<Piece>(
      'remote',
      () => guarded(begin),
      // Cut off after its last piece, there is nothing to follow.
      () => (question === undefined && !this.#ended ? guarded(() => this.#run.follow()) : EMPTY),
    );
    const next = defer(() => {
      if (question === undefined) return EMPTY;
      const { id: _, ...request } = question.request;
      return context.await(request).pipe(
        switchMap(({ message }) => {
          // Also in a replay, in which the reply is not sent: the run is answered.
          const reply = this.#run.reply(message);
          return this.#stretch(() => reply);
        }),
      );
    });
    const take = (piece: Piece): void => {
      this.#run.onPiece(piece);
      if (piece.type === 'question') question = piece;
    };
    return concat(
      pieces.pipe(
        tap(take),
        concatMap((piece) => this.#outputOf(piece)),
      ),
      next,
    );
  }

  #outputOf(piece: Piece): AgentOutput[] {
    switch (piece.type) {
      case 'part':
        return [isPlainText(piece.part) ? piece.part.content : piece.part];
      case 'end-of-message':
        return [endOfMessage(piece.reason)];
      case 'replaced':
        return [endOfMessage()];
      case 'generic':
        return [piece.event];
      case 'completed':
      case 'failed':
        this.#ended = true;
        if (piece.usage !== undefined) this.#context.usage(piece.usage);
        if (piece.type === 'failed') throw agentErrorOf(piece.error);
        return [];
      default:
        return [];
    }
  }

  /** The output ended or was left. A run that goes on elsewhere still needs the remote run. */
  async #left(): Promise<void> {
    const { signal, log } = this.#context;
    const continues = signal.aborted && (await Object(signal.reason).continues) === true;
    if (this.#ended || continues) return;
    try {
      await this.#run.cancel();
    } catch (error) {
      log.warn(`the remote run could not be cancelled: ${errorOf(error).message}`);
    }
  }
}
