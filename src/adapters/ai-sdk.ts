import type { ModelMessage, TextStreamPart, ToolSet } from 'ai';
import {
  concat,
  concatMap,
  defer,
  filter,
  firstValueFrom,
  from,
  map,
  type Observable,
  ReplaySubject,
  switchMap,
  tap,
  toArray,
} from 'rxjs';
import type { AgentContext, AgentFunction, AgentOutput } from '../core/agent.ts';
import { askApproval, unknownOutcome } from '../core/approval.ts';
import { errorOf } from '../core/errors.ts';
import { isObject } from '../core/json.ts';
import { brokenConnection, brokenOff } from '../core/model-errors.ts';
import { citation, endOfMessage, trajectory } from '../core/parts.ts';
import { type Said, type SaidCall, saidIn } from '../core/said.ts';
import { type Asked, ModelCalls, prepared, resultOf, settingsOf, usageIn } from './ai-sdk-model.ts';
import {
  type Call,
  callsCutOff,
  callsDropped,
  continued,
  cutAfter,
  endsInApproved,
  isComplete,
  isResult,
  type Piece,
  pendingApprovals,
  settledIn,
  toldUsage,
} from './ai-sdk-pieces.ts';
import {
  contentsSaid,
  conversation,
  cutOffFrom,
  noResult,
  notExecuted,
  toolBegun,
  toolEnded,
  toolFailed,
  usageOf,
} from './conversation.ts';

/** What `streamText` and `agent.stream` return, as far as the adapter reads it. */
export interface AiSdkStream {
  readonly fullStream: AsyncIterable<{ readonly type: string }>;
}

/** A `ToolLoopAgent`, or another agent of the AI SDK. */
export interface AiSdkAgent {
  readonly tools?: object;
  stream(call: { messages: ModelMessage[]; abortSignal: AbortSignal }): PromiseLike<AiSdkStream>;
}

/** Calls `streamText` with the messages; `context.signal` belongs into its `abortSignal`. */
export type AiSdkFunction = (messages: ModelMessage[], context: AgentContext) => AiSdkStream | PromiseLike<AiSdkStream>;

/**
 * The function of an agent that the AI SDK executes, version 6 or 7. The model gets the session's history and the input.
 * Each model call is one message of the output; a tool that needs an approval is a question with a boolean reply.
 * In a durable run the stream is journaled. After a crash the model gets what the journal has, with the results of tools,
 * and continues from there.
 */
export function aiSdkAgent(agent: AiSdkAgent | AiSdkFunction): AgentFunction {
  return (input, context) => {
    const library = typeof agent === 'function' ? functionLibrary(agent, context) : agentLibrary(agent, context);
    return conversation(input, context).pipe(
      switchMap((messages) => turn(saidIn(messages).flatMap(toModelMessages), library, context)),
    );
  };
}

/** The library's side of one run. */
interface Library extends Omit<Asked, 'messages'> {
  readonly stream: (messages: ModelMessage[]) => AiSdkStream | PromiseLike<AiSdkStream>;
  /** A call has come through the journal. */
  readonly called: (toolCallId: string) => void;
  /** The ids of the calls that were shown. After a crash, a model may use one again. */
  readonly shown: Set<string>;
}

const functionLibrary = (agent: AiSdkFunction, context: AgentContext): Library => ({
  stream: (messages) => agent(messages, context),
  tools: {},
  shown: new Set(),
  called: () => undefined,
});

function agentLibrary(agent: AiSdkAgent, { signal, committed }: AgentContext): Library {
  const { model, instructions } = settingsOf(agent);
  const { tools = {} } = agent;
  const called = new ReplaySubject<string>();
  const own = prepared(agent, async (id) => {
    await firstValueFrom(called.pipe(filter((one) => one === id)));
    await committed();
  });
  const stream = (messages: ModelMessage[]) => own.stream({ messages, abortSignal: signal });
  return { stream, model, instructions, tools, shown: new Set(), called: (id) => called.next(id) };
}

/** One stream of the SDK: it ends, or it needs approvals and the next one has the replies. `approved`: tools to execute. */
function turn(
  messages: ModelMessage[],
  library: Library,
  context: AgentContext,
  approved: readonly Call[] = [],
): Observable<AgentOutput> {
  const { tools } = library;
  const pieces: Piece[] = [];
  const ask = async function* (told: ModelMessage[], executed = false): AsyncGenerator<Piece> {
    const calls = new ModelCalls(context, { ...library, messages: told });
    yield* piecesOf(await library.stream(told), calls, executed);
  };
  async function* goOn(before: readonly Piece[]): AsyncGenerator<Piece> {
    const known = [...before];
    for (const call of callsCutOff(before)) {
      const again = await executeAgain(call, tools, continued(messages, before), context.signal);
      const result: Piece = again ?? { type: 'tool-error', ...call, ofProvider: false, error: unknownOutcome };
      known.push(result);
      yield result;
    }
    if (!isComplete(known))
      for (const { toolCallId, toolName } of callsDropped(before)) yield { type: 'dropped', toolCallId, toolName };
    const cut = cutAfter(known);
    yield cut;
    if (isComplete(known)) return;
    const settled = settledIn(known);
    const answer = ask(continued(messages, [...known, cut]), endsInApproved(known));
    // Version 7 reports a denied call each time.
    for await (const piece of answer) if (!isResult(piece) || !settled.has(piece.toolCallId)) yield piece;
  }
  async function* begin(): AsyncGenerator<Piece> {
    // The SDK executes approved tools before anything that it tells. The adapter has no tools of a function to execute again.
    const calls = approved.filter(({ toolName }) => Reflect.get(tools, toolName) === undefined);
    if (calls.length > 0) {
      yield { type: 'approved', calls };
      await context.committed();
    }
    yield* ask(messages);
  }
  const collect = (piece: Piece): void => {
    if (piece.type === 'usage' || (piece.type === 'step-end' && !toldUsage(pieces))) context.usage(piece.usage);
    if (piece.type === 'call') library.called(piece.toolCallId);
    pieces.push(piece);
  };
  const next = defer(() => {
    const pending = pendingApprovals(pieces);
    if (pending.length === 0) return [];
    return from(pending).pipe(
      concatMap(({ approvalId, toolName, toolInput }) =>
        askApproval(context, toolName, toolInput).pipe(
          map((approval) => ({ type: 'tool-approval-response' as const, approvalId, ...approval })),
        ),
      ),
      toArray(),
      switchMap((content) => {
        const given = [...continued(messages, pieces), { role: 'tool' as const, content }];
        return turn(
          given,
          library,
          context,
          pending.filter((_, index) => content[index]?.approved),
        );
      }),
    );
  });
  return concat(
    context.step('ai-sdk', begin, goOn).pipe(
      tap(collect),
      concatMap((piece) => outputsOf(piece, library.shown)),
    ),
    next,
  );
}

/**
 * Executes a tool that a crash cut off. Undefined where the adapter cannot do it as the SDK does, or the tool fails: its
 * outcome is unknown then.
 */
async function executeAgain(
  { toolCallId, toolName, toolInput }: Call,
  tools: object,
  messages: ModelMessage[],
  abortSignal: AbortSignal,
): Promise<Piece | undefined> {
  const tool: unknown = Reflect.get(tools, toolName);
  if (!isObject(tool) || typeof tool.execute !== 'function' || tool.contextSchema !== undefined) return undefined;
  try {
    const output = await resultOf(tool, toolInput, { toolCallId, messages, abortSignal });
    return { type: 'result', toolCallId, toolName, toolInput, ofProvider: false, output: output ?? null };
  } catch {
    return undefined;
  }
}

/**
 * Reads a stream; what neither the reader nor the model needs is left out. Results of approved tools come before the first
 * model call, and are a message of their own; `executed`: there were some before a crash.
 */
async function* piecesOf(stream: AiSdkStream, calls: ModelCalls, executed: boolean): AsyncGenerator<Piece> {
  let hasResults = executed;
  let asked = false;
  const reasoning = new Map<string, string>();
  for await (const part of partsOf(stream, calls)) {
    switch (part.type) {
      case 'text-delta':
        if (part.text !== '') yield { type: 'text', text: part.text };
        break;
      case 'reasoning-delta':
        reasoning.set(part.id, `${reasoning.get(part.id) ?? ''}${part.text}`);
        break;
      case 'reasoning-end': {
        const { id, providerMetadata } = part;
        const text = reasoning.get(id) ?? '';
        // Providers use an id again in each model call.
        reasoning.delete(id);
        yield { type: 'reasoning', text, ...(providerMetadata && { providerOptions: providerMetadata }) };
        break;
      }
      case 'start-step':
        if (!asked && hasResults) yield { type: 'step-end', usage: {} };
        asked = true;
        break;
      case 'finish':
        yield { type: 'end' };
        break;
      default: {
        const piece = wholePiece(part);
        if (piece === undefined) break;
        hasResults ||= isResult(piece);
        yield piece;
      }
    }
  }
}

/** The parts of a stream, of which calls of the model are reported. @throws what failed, also what the stream has as a part */
async function* partsOf({ fullStream }: AiSdkStream, calls: ModelCalls): AsyncGenerator<TextStreamPart<ToolSet>> {
  try {
    // The parts of the stream depend on the tools of the agent only in their inputs and outputs.
    for await (const part of fullStream as AsyncIterable<TextStreamPart<ToolSet>>) {
      if (part.type === 'error') throw part.error;
      if (part.type === 'abort')
        throw new Error(`The AI SDK aborted the stream: ${part.reason ?? 'no reason was given'}.`);
      if (part.type === 'finish-step' && hasNoEndMark(part)) throw brokenOff();
      calls.read(part);
      yield part;
    }
  } catch (error) {
    calls.failed(error);
    throw brokenConnection(error) ?? error;
  }
}

function wholePiece(part: TextStreamPart<ToolSet>): Piece | undefined {
  switch (part.type) {
    case 'file':
      return { type: 'file', base64: part.file.base64, mediaType: part.file.mediaType };
    case 'source':
      return part.sourceType === 'url'
        ? { type: 'source', url: part.url, ...(part.title && { title: part.title }) }
        : { type: 'source', title: part.title };
    case 'tool-call': {
      const { providerMetadata, ...call } = part;
      return { type: 'call', ...callOf(call), ...(providerMetadata && { providerOptions: providerMetadata }) };
    }
    case 'tool-result':
      return part.preliminary === true ? undefined : { type: 'result', ...callOf(part), output: part.output ?? null };
    case 'tool-error':
      return { type: 'tool-error', ...callOf(part), error: errorOf(part.error).message };
    case 'tool-output-denied':
      return { type: 'denied', toolCallId: part.toolCallId, toolName: part.toolName };
    case 'tool-approval-request': {
      const { approvalId, signature } = part;
      return { type: 'approval', ...callOf(part.toolCall), approvalId, ...(signature && { signature }) };
    }
    case 'raw': {
      const usage = usageIn(part.rawValue);
      return usage && { type: 'usage', usage };
    }
    case 'finish-step': {
      const { totalTokens, inputTokens, outputTokens } = part.usage;
      const cutOff = cutOffFrom(part.finishReason);
      return {
        type: 'step-end',
        usage: usageOf(inputTokens, outputTokens, totalTokens),
        ...(cutOff !== undefined && { cutOff }),
      };
    }
    default:
      return undefined;
  }
}

/** Whether a provider's answer broke off. Version 7 has a reason for it; version 6 has `other`, and none of the provider. */
const hasNoEndMark = (step: { readonly finishReason: string; readonly rawFinishReason: string | undefined }): boolean =>
  step.finishReason === 'interrupted' || (step.finishReason === 'other' && step.rawFinishReason === undefined);

const callOf = (call: {
  toolCallId: string;
  toolName: string;
  input: unknown;
  providerExecuted?: boolean | undefined;
}) => ({
  toolCallId: call.toolCallId,
  toolName: call.toolName,
  toolInput: call.input ?? null,
  ofProvider: call.providerExecuted === true,
});

function outputsOf(piece: Piece, shown: Set<string>): AgentOutput[] {
  switch (piece.type) {
    case 'text':
      return [piece.text];
    case 'reasoning':
      return piece.text === '' ? [] : [trajectory({ message: piece.text })];
    case 'source':
      return [citation({ ...(piece.url && { url: piece.url }), ...(piece.title && { title: piece.title }) })];
    case 'file':
      return [{ content_type: piece.mediaType, content_encoding: 'base64', content: piece.base64 }];
    case 'call':
      if (shown.has(piece.toolCallId)) return [];
      shown.add(piece.toolCallId);
      return [toolBegun(piece.toolCallId, piece.toolName, piece.toolInput)];
    case 'result':
      return [toolEnded(piece.toolCallId, piece.toolName, piece.output)];
    case 'tool-error':
      return [toolFailed(piece.toolCallId, piece.toolName, piece.error)];
    case 'dropped':
      return [toolFailed(piece.toolCallId, piece.toolName, notExecuted)];
    case 'denied':
      return [toolEnded(piece.toolCallId, piece.toolName, { denied: true })];
    case 'step-end':
      return [endOfMessage(piece.cutOff)];
    case 'cut':
      return piece.messageEnds ? [endOfMessage()] : [];
    default:
      return [];
  }
}

function toModelMessages(said: Said): ModelMessage[] {
  const content = contentsSaid(said).map((one) => {
    if ('text' in one) return { type: 'text' as const, text: one.text };
    const data = 'url' in one ? new URL(one.url) : one.base64;
    return { type: 'file' as const, data, mediaType: one.type, ...(one.name !== undefined && { filename: one.name }) };
  });
  if (said.role === 'user') return content.length === 0 ? [] : [{ role: 'user', content }];
  const calls = said.calls.map(({ id, name, input }) => ({
    type: 'tool-call' as const,
    toolCallId: id,
    toolName: name,
    input,
  }));
  if (content.length + calls.length === 0) return [];
  const results = said.calls.map(({ id, name, result }) => ({
    type: 'tool-result' as const,
    toolCallId: id,
    toolName: name,
    output: outputOf(result),
  }));
  return [
    { role: 'assistant', content: [...content, ...calls] },
    ...(results.length === 0 ? [] : [{ role: 'tool' as const, content: results }]),
  ];
}

function outputOf({ tool_output, tool_error = noResult }: SaidCall['result']) {
  if (tool_output === undefined) return { type: 'error-text' as const, value: tool_error };
  return { type: 'json' as const, value: JSON.parse(JSON.stringify(tool_output)) };
}
