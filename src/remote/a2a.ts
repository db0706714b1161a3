import { setTimeout } from 'node:timers/promises';
import type { Message as A2aMessage, AgentCard, SendMessageRequest, StreamResponse } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import { Type } from '@sinclair/typebox';
import { concatMap, defer, from, lastValueFrom, Observable } from 'rxjs';
import { type AgentContext, type AgentManifestInput, nameProblem } from '../core/agent.ts';
import { AgentError, errorOf, fail } from '../core/errors.ts';
import { compile, open } from '../core/validate.ts';
import { extension } from '../schema/a2a-extension.ts';
import type { Message } from '../schema/message.ts';
import { messageFor } from './a2a-parts.ts';
import { TaskPieces } from './a2a-task.ts';
import { type Connection, optional, tooLargeIn, Unreachable } from './connection.ts';
import type { Piece, RemoteAgent, RemoteCall, RemoteRun } from './remote-run.ts';

const cardPath = '.well-known/agent-card.json';

interface Peer {
  readonly client: Client;
  readonly card: AgentCard;
}

/** An A2A agent. `url` is the address of its card, or the address below which the card is. */
export function a2aAgent(connection: Connection, url: string): RemoteAgent {
  const address = url.endsWith('.json') ? url : `${url.replace(/\/?$/, '/')}${cardPath}`;
  const open = async (context?: AgentContext): Promise<Peer> => {
    const sdk = await optional('@a2a-js/sdk', () => import('@a2a-js/sdk/client'));
    const fetchImpl = refusing(connection.fetchFor(context, new URL(address).origin));
    const resolver = new sdk.DefaultAgentCardResolver({ fetchImpl });
    const card = checkedCard(address, await resolver.resolve(address, '').catch(noJson));
    const transports = [new sdk.JsonRpcTransportFactory({ fetchImpl }), new sdk.RestTransportFactory({ fetchImpl })];
    return { card, client: await new sdk.ClientFactory({ transports }).createFromAgentCard(card) };
  };
  return {
    manifest: async () => manifestOf((await open()).card),
    run: (call) => new A2aRun(connection, () => open(call.context), call),
  };
}

/** What is read of a card, here and by the SDK, which checks none of it. */
const Card = open({
  name: Type.String(),
  description: Type.String(),
  supportedInterfaces: Type.Array(Type.Object({ url: Type.String(), protocolBinding: Type.String() })),
  skills: Type.Optional(
    Type.Array(
      Type.Object({
        tags: Type.Optional(Type.Array(Type.String())),
        examples: Type.Optional(Type.Array(Type.String())),
      }),
    ),
  ),
});
const checkCard = compile(Card, 'card');

/** A page that is no JSON becomes an answer that is no card. */
function noJson(error: unknown): undefined {
  if (!(error instanceof SyntaxError)) throw error;
}

/** @throws AgentError `remote_refused` for what is no card of A2A 1.0: another attempt would get the same */
function checkedCard(address: string, card: AgentCard | undefined): AgentCard {
  try {
    const { supportedInterfaces } = checkCard(card);
    const isKnown = supportedInterfaces.some(({ protocolBinding }) => /^(jsonrpc|http\+json)$/i.test(protocolBinding));
    if (card !== undefined && isKnown) return card;
    throw fail('validation_failed', 'card.supportedInterfaces', 'expected one with JSONRPC or HTTP+JSON');
  } catch (error) {
    throw new AgentError('remote_refused', `${address} is no agent card of A2A 1.0. ${errorOf(error).message}`);
  }
}

/** Fails where another attempt may succeed, and where the SDK's error would not say what to do. */
const refusing =
  (fetch: typeof globalThis.fetch): typeof globalThis.fetch =>
  async (input, init) => {
    const response = await fetch(input, init);
    const { status } = response;
    if ([408, 429, 502, 503, 504].includes(status)) {
      await response.body?.cancel();
      throw new Unreachable(`it answered ${status}`);
    }
    if ([301, 302, 307, 308, 401, 403, 404].includes(status)) {
      await response.body?.cancel();
      const message = `The server of the remote agent answered ${status}; check the URL, the token and the headers.`;
      throw new AgentError('remote_refused', message, { status });
    }
    return response;
  };

function manifestOf({
  name,
  description,
  defaultInputModes,
  defaultOutputModes,
  skills = [],
}: AgentCard): AgentManifestInput {
  const label = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 63)
    .replace(/^-|-$/g, '');
  const examples = skills.flatMap((skill) => skill.examples ?? []).slice(0, 20);
  const tags = [...new Set(skills.flatMap((skill) => skill.tags ?? []))];
  return {
    name: nameProblem(label) === undefined ? label : 'remote',
    description,
    input_content_types: typesOf(defaultInputModes),
    output_content_types: typesOf(defaultOutputModes),
    metadata: { ...(tags.length > 0 && { tags }), ...(examples.length > 0 && { examples }) },
  };
}

/** Cards also have words such as `text`, which are no media types. */
function typesOf(modes: readonly string[] = []): string[] {
  return modes.length > 0 && modes.every((mode) => /^[\w.+-]+\/[\w.+*-]+$/.test(mode)) ? [...modes] : ['*/*'];
}

/** A task of another server. */
class A2aRun implements RemoteRun {
  readonly #connection: Connection;
  readonly #open: () => Promise<Peer>;
  readonly #call: RemoteCall;
  readonly #task = new TaskPieces();
  #peer: Promise<Peer> | undefined;
  /** The id of the task, when the first answer to a message has come; undefined where none comes. */
  #made: Promise<string | undefined> | undefined;

  constructor(connection: Connection, open: () => Promise<Peer>, call: RemoteCall) {
    this.#connection = connection;
    this.#open = open;
    this.#call = call;
  }

  begin(): Observable<Piece> {
    return this.#following(this.#first());
  }

  #first(): A2aMessage {
    const { input, key, session } = this.#call;
    const parts = input.flatMap((message) => message.parts);
    return { ...messageFor(key, parts), contextId: session };
  }

  follow(): Observable<Piece> {
    return this.#following();
  }

  reply({ parts }: Message): Observable<Piece> {
    const { task: taskId = '', session: contextId = '', question = '' } = this.#task;
    this.#task.answer();
    return this.#following({ ...messageFor(`${this.#call.key} ${question}`, parts), taskId, contextId });
  }

  onPiece(piece: Piece): void {
    this.#task.take(piece);
  }

  async cancel(): Promise<void> {
    if (this.#made === undefined && this.#task.task === undefined) return;
    const cancelled = async (): Promise<void> => {
      const id = this.#task.task ?? (await this.#made) ?? (await this.#repeated());
      const { client } = await this.#connected();
      await client.cancelTask({ tenant: '', id, metadata: undefined });
    };
    await lastValueFrom(defer(cancelled).pipe(this.#connection.retrying(mayRetry)));
  }

  /** The id of a task whose first answer was lost. A Rivulet server knows a message that comes again. */
  async #repeated(): Promise<string> {
    const { client, card } = await this.#connected();
    if (!hasCursor(card)) throw new AgentError('remote_unknown', 'The first answer of the server was lost.');
    const made = await client.sendMessage(requestOf(this.#first(), true));
    return 'id' in made ? made.id : made.taskId;
  }

  errorOf(thrown: unknown): unknown {
    if (thrown instanceof AgentError) return thrown;
    const tooLarge = tooLargeIn(thrown);
    if (tooLarge !== undefined) return tooLarge;
    const refusal = refusalIn(thrown);
    if (refusal === undefined) return new AgentError('remote_unreachable', 'The remote agent does not answer.');
    return new AgentError('remote_refused', refusal.message, { reason: refusal.reason });
  }

  /** The answer to a message, and what follows of the task, over as many connections as it takes. */
  #following(message?: A2aMessage): Observable<Piece> {
    return new Observable((subscriber) => {
      const left = new AbortController();
      const leave = (): void => left.abort();
      // The first answer has the id that a cancel needs, so the connection stays until that answer has come.
      subscriber.add(() => void (this.#made ?? Promise.resolve()).then(leave));
      const progress = { sent: message === undefined };
      defer(() => from(this.#answers(message, progress, left.signal)))
        .pipe(
          this.#connection.retrying(mayRetry),
          concatMap((pieces) => pieces),
        )
        .subscribe(subscriber);
    });
  }

  /** A message that has an answer is not sent again. */
  async *#answers(
    message: A2aMessage | undefined,
    progress: { sent: boolean },
    signal: AbortSignal,
  ): AsyncGenerator<Piece[]> {
    if (message !== undefined && !progress.sent && !(await this.#hasReply(message, signal))) {
      for await (const answer of this.#send(message, signal)) {
        progress.sent = true;
        yield this.#task.of(answer);
        if (this.#task.settled) return;
      }
    }
    yield* this.#rest(signal);
  }

  /** Whether a reply came in before a crash: the task does not ask this question any more. */
  async #hasReply({ taskId: id }: A2aMessage, signal: AbortSignal): Promise<boolean> {
    if (id === '') return false;
    const { client } = await this.#connected();
    return !this.#task.stillAsks(await client.getTask({ tenant: '', id }, { signal }));
  }

  /** A server that cannot stream answers with the task as it begins. */
  async *#send(message: A2aMessage, signal: AbortSignal): AsyncGenerator<StreamResponse> {
    const { client, card } = await this.#connected();
    const returnImmediately = card.capabilities?.streaming !== true;
    const request = requestOf(message, returnImmediately);
    const answers = client.sendMessageStream(request, { serviceParameters: extensionsOf(card), signal });
    const first = answers.next();
    if (this.#task.task === undefined) {
      // Where the connection breaks, the next attempt has another answer.
      this.#made = first.then(
        ({ value }) => (value ? taskIn(value) : undefined),
        () => undefined,
      );
    }
    const { done, value } = await first;
    if (done === true) return;
    yield value;
    yield* answers;
  }

  /**
   * The task after what the caller has. A server without the extension is asked for the task again and again: its
   * subscription may repeat what its snapshot has, and nothing in it would show that.
   */
  async *#rest(signal: AbortSignal): AsyncGenerator<Piece[]> {
    const { client, card } = await this.#connected();
    const id = this.#task.task;
    if (id === undefined) throw new Unreachable('it ended before the task began');
    const { at } = this.#task;
    if (hasCursor(card) && at !== undefined) {
      const answers = client.resubscribeTask(
        { tenant: '', id },
        {
          serviceParameters: { ...extensionsOf(card), 'Last-Event-ID': at },
          signal,
        },
      );
      for await (const answer of answers) {
        yield this.#task.of(answer);
        if (this.#task.settled) return;
      }
      throw new Unreachable('the stream ended early');
    }
    for (;;) {
      const value = await client.getTask({ tenant: '', id }, { signal });
      yield this.#task.of({ payload: { $case: 'task', value } });
      if (this.#task.settled) return;
      await setTimeout(this.#connection.delay, undefined, { signal });
    }
  }

  #connected(): Promise<Peer> {
    const peer = this.#peer ?? this.#open();
    this.#peer = peer;
    // The next attempt asks again.
    peer.catch(() => {
      this.#peer = undefined;
    });
    return peer;
  }
}

const requestOf = (message: A2aMessage, returnImmediately: boolean): SendMessageRequest => ({
  tenant: '',
  message,
  configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately },
  metadata: undefined,
});

const mayRetry = (error: unknown): boolean =>
  !(error instanceof AgentError) && tooLargeIn(error) === undefined && refusalIn(error) === undefined;

const hasCursor = ({ capabilities }: AgentCard): boolean =>
  capabilities?.extensions?.some(({ uri }) => uri === extension.cursor) === true;

const extensionsOf = (card: AgentCard): Record<string, string> =>
  hasCursor(card) ? { 'A2A-Extensions': extension.cursor } : {};

const taskIn = ({ payload }: StreamResponse): string | undefined => {
  if (payload?.$case === 'task') return payload.value.id;
  return payload?.value.taskId || undefined;
};

/** What the other server has refused: an error of the protocol, which another attempt would repeat. */
function refusalIn(error: unknown): { readonly reason: string; readonly message: string } | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('reason' in error && typeof error.reason === 'string') return { reason: error.reason, message: error.message };
  return refusalIn(error.cause);
}
