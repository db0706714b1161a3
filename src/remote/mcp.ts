import type { CallToolResult, Tool } from '@modelcontextprotocol/client';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  from,
  map,
  Observable,
  of,
  switchMap,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import type { AgentContext, AgentOutput } from '../core/agent.ts';
import { AgentError, errorOf } from '../core/errors.ts';
import { isObject } from '../core/json.ts';
import { progress, trajectory } from '../core/parts.ts';
import { replyValue } from '../core/reply.ts';
import type { AwaitResume } from '../schema/run.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import {
  type Elicitation,
  elicitationOf,
  type McpCommand,
  McpConnection,
  type Opened,
  plain,
} from './mcp-connection.ts';
import { failureOf, resultOf, type ToolResult, unknownOutcome } from './mcp-outcome.ts';

export type { ConnectionOptions, FromContext } from './connection.ts';
export type { McpCommand } from './mcp-connection.ts';

export interface McpOptions extends Pick<ConnectionOptions, 'token' | 'headers' | 'allowNetworks'> {
  /** Milliseconds without progress after which a call fails. Default 60,000. */
  readonly timeout?: number;
  /** Milliseconds for a whole call. Default one hour. */
  readonly totalTimeout?: number;
  /** Characters of a result as JSON. Default 4 Mi. */
  readonly maxResult?: number;
}

/** A tool as its server describes it. */
export interface McpTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  /** A JSON Schema of an object. */
  readonly input_schema: Record<string, unknown>;
  readonly output_schema?: Record<string, unknown>;
  /** What the server says of it. `repeatable`: a call that is made twice has no further effect. */
  readonly repeatable: boolean;
}

/** The tools of one MCP server. */
export interface McpTools {
  tools(): Promise<McpTool[]>;
  /**
   * Calls a tool when subscribed to: progress events, a step that shows the call, and the parts of the result. With a
   * context it asks what the server asks; in a durable run it is called once. Unsubscribing cancels the call.
   * It fails with `tool_failed` where the tool says so.
   */
  call(name: string, args: Record<string, unknown>, context?: AgentContext): Observable<AgentOutput>;
  /** Closes the connection, and ends a child process. The next call opens it again. */
  close(): Promise<void>;
}

/** What happens in a call, as the journal of a durable run has it. */
type Piece =
  | { readonly type: 'began' }
  | { readonly type: 'progress'; readonly message: string; readonly done: number; readonly total?: number }
  | { readonly type: 'asked'; readonly asked: Elicitation }
  | { readonly type: 'input'; readonly requests: readonly (Elicitation & { key: string })[]; readonly state?: string }
  | ({ readonly type: 'result' } & ToolResult);

/** What a call is made with again after the server has asked. */
interface Retry {
  readonly inputResponses: Record<string, { action: 'accept'; content: ReturnType<typeof plain> }>;
  readonly requestState?: string;
}

const defaults = { timeout: 60_000, totalTimeout: 3_600_000, maxResult: 4 * 1024 * 1024 };

/**
 * The tools of an MCP server, over streamable HTTP or a child process. Nothing is sent before the first call.
 * @throws Error that names a text of `allowNetworks` which is no network
 */
export function mcpTools(server: string | McpCommand, options: McpOptions = {}): McpTools {
  const limits = { ...defaults, ...options };
  const connection = new McpConnection(server, new Connection({ ...options, idleTimeout: 0 }), limits.timeout);
  return {
    tools: async () => (await connection.tools()).map(describe),
    call: (name, args, context) => new Call(connection, limits, name, args, context).output(),
    close: () => connection.close(),
  };
}

const describe = ({ name, title, description, inputSchema, outputSchema, annotations }: Tool): McpTool => ({
  name,
  ...(title !== undefined && { title }),
  ...(description !== undefined && { description }),
  input_schema: inputSchema,
  ...(outputSchema !== undefined && { output_schema: outputSchema }),
  repeatable: annotations?.readOnlyHint === true || annotations?.idempotentHint === true,
});

/** The calls of MCP tools that each context has made. A context itself counts only the calls of `context.tool`. */
const calls = new WeakMap<AgentContext, number>();

/** The id of a context's next call: the same in every life of a durable run. */
function nextId(context: AgentContext): string {
  const count = (calls.get(context) ?? 0) + 1;
  calls.set(context, count);
  return `${context.path}${context.path === '' ? '' : ' '}mcp/${count}`;
}

/** One call of a tool. */
class Call {
  readonly #connection: McpConnection;
  readonly #limits: typeof defaults;
  readonly #name: string;
  readonly #args: Record<string, unknown>;
  readonly #context: AgentContext | undefined;
  /** The fields that all parts of the call have. */
  readonly #step: { readonly tool_name: string; readonly tool_call_id?: string };
  /** Takes the reply to a question that the server has asked within the call. */
  #reply: ((content: Record<string, unknown> | undefined) => void) | undefined;
  /** Whether the call has been handed to the connection. */
  #sent = false;
  /** The journal has the piece `began`. */
  #noted: (() => void) | undefined;

  constructor(
    connection: McpConnection,
    limits: typeof defaults,
    name: string,
    args: Record<string, unknown>,
    context: AgentContext | undefined,
  ) {
    this.#connection = connection;
    this.#limits = limits;
    this.#name = name;
    this.#args = args;
    this.#context = context;
    this.#step = { tool_name: name, ...(context && { tool_call_id: nextId(context) }) };
  }

  /** The call until it has a result, or until the server needs input; then again with the replies. */
  output(retry?: Retry): Observable<AgentOutput> {
    let needs: Extract<Piece, { type: 'input' }> | undefined;
    const work = (): Observable<Piece> => this.#pieces(retry);
    const pieces =
      this.#context?.step<Piece>(`mcp ${this.#name}`, work, (before) => this.#again(before, work)) ?? work();
    const next = defer(() => {
      if (needs === undefined) return EMPTY;
      const { requests, state } = needs;
      return from(requests).pipe(
        concatMap((request) =>
          this.#ask(request).pipe(map((content) => [request.key, { action: 'accept', content: plain(content) }])),
        ),
        toArray(),
        switchMap((replies) => {
          const inputResponses = Object.fromEntries(replies);
          return this.output({ inputResponses, ...(state !== undefined && { requestState: state }) });
        }),
      );
    });
    const note = (piece: Piece): void => {
      if (piece.type === 'input') needs = piece;
    };
    return concat(
      retry === undefined ? of(trajectory({ ...this.#step, tool_input: this.#args })) : EMPTY,
      pieces.pipe(
        tap(note),
        concatMap((piece) => this.#outputOf(piece)),
        catchError((error) =>
          concat(
            of(trajectory({ ...this.#step, tool_error: errorOf(error).message })),
            throwError(() => error),
          ),
        ),
      ),
      next,
    );
  }

  #outputOf(piece: Piece): Observable<AgentOutput> | AgentOutput[] {
    switch (piece.type) {
      case 'began':
        this.#noted?.();
        return [];
      case 'progress': {
        const { message, done, total } = piece;
        return [progress(message, { done, ...(total !== undefined && { total }) })];
      }
      case 'asked':
        return this.#ask(piece.asked).pipe(
          concatMap((content) => {
            this.#reply?.(content);
            return EMPTY;
          }),
        );
      case 'result': {
        const { output, error, parts } = piece;
        if (error !== undefined) return throwError(() => new AgentError('tool_failed', error));
        return [trajectory({ ...this.#step, tool_output: output }), ...parts];
      }
      default:
        return [];
    }
  }

  /** Asks the user for what the server needs. */
  #ask({ message, schema }: Elicitation): Observable<Record<string, unknown>> {
    const context = this.#context;
    if (context === undefined) {
      throw new AgentError('tool_asks', `The tool ${this.#name} asks a question, and was called without a context.`);
    }
    return context.await(message, schema && { schema }).pipe(map(contentOf));
  }

  /** After a crash in the middle of a call. */
  #again(before: readonly Piece[], work: () => Observable<Piece>): Observable<Piece> {
    if (before.some(({ type }) => type === 'result' || type === 'input')) return EMPTY;
    return defer(async () => {
      const tools = await this.#connection.tools();
      return tools.map(describe).find(({ name }) => name === this.#name)?.repeatable === true;
    }).pipe(
      switchMap((repeatable) => {
        if (repeatable) return work();
        throw unknownOutcome(this.#name, 'a crash');
      }),
    );
  }

  #pieces(retry: Retry | undefined): Observable<Piece> {
    return new Observable((subscriber) => {
      const left = new AbortController();
      subscriber.add(() => left.abort());
      const emit = (piece: Piece): void => subscriber.next(piece);
      const elicit = (asked: Elicitation): Promise<Record<string, unknown> | undefined> =>
        new Promise((resolve) => {
          this.#reply = resolve;
          left.signal.addEventListener('abort', () => resolve(undefined));
          emit({ type: 'asked', asked });
        });
      // This piece is durable before the call is made: after a crash, it tells that the call may have been made.
      const noted = new Promise<void>((resolve) => {
        this.#noted = resolve;
      });
      emit({ type: 'began' });
      noted
        .then(() => this.#context?.committed())
        .then(() =>
          this.#connection.during(this.#context, elicit, (opened) => this.#request(opened, retry, left.signal, emit)),
        )
        .then(
          (piece) => {
            emit(piece);
            subscriber.complete();
          },
          (error: unknown) => subscriber.error(this.#errorOf(error)),
        );
    });
  }

  async #request(
    { sdk, client }: Opened,
    retry: Retry | undefined,
    signal: AbortSignal,
    emit: (piece: Piece) => void,
  ): Promise<Piece> {
    const { timeout, totalTimeout, maxResult } = this.#limits;
    signal.throwIfAborted();
    this.#sent = true;
    const result: unknown = await client.callTool(
      { name: this.#name, arguments: this.#args, ...retry },
      {
        signal,
        timeout,
        resetTimeoutOnProgress: true,
        maxTotalTimeout: totalTimeout,
        allowInputRequired: true,
        onprogress: ({ progress: done, total, message = '' }) =>
          emit({ type: 'progress', message, done, ...(total !== undefined && { total }) }),
      },
    );
    if (JSON.stringify(result).length > maxResult) {
      throw new AgentError(
        'tool_result_too_large',
        `The result of ${this.#name} has more than ${maxResult} characters.`,
      );
    }
    if (sdk.isInputRequiredResult(result)) {
      const requests = Object.entries(result.inputRequests ?? {}).map(([key, { method, params }]) => {
        if (method !== 'elicitation/create' || params === undefined || !('requestedSchema' in params)) {
          throw new AgentError('tool_asks', `The tool ${this.#name} needs ${method}, which Rivulet does not offer.`);
        }
        return { key, ...elicitationOf(params.message, params.requestedSchema) };
      });
      return { type: 'input', requests, ...(result.requestState !== undefined && { state: result.requestState }) };
    }
    return { type: 'result', ...resultOf(result as CallToolResult) };
  }

  #errorOf(error: unknown): AgentError {
    if (error instanceof AgentError) return error;
    this.#context?.log.warn(`the MCP tool ${this.#name}: ${errorOf(error).message}`);
    return failureOf(this.#name, error, this.#sent);
  }
}

/** The values of a reply: its JSON, or else its text as the only value. */
function contentOf(reply: AwaitResume): Record<string, unknown> {
  const value = replyValue(reply);
  return isObject(value) ? value : { value };
}
