import type { AssistantModelMessage, ModelMessage, ToolModelMessage } from 'ai';
import type { CutOff } from '../core/cut-off.ts';
import { goOn } from '../core/said.ts';
import type { RunUsage } from '../schema/run.ts';

type ProviderOptions = NonNullable<ModelMessage['providerOptions']>;
type AssistantPart = Exclude<AssistantModelMessage['content'], string>[number];
type ToolResult = Extract<ToolModelMessage['content'][number], { type: 'tool-result' }>;

/** A call of a tool. */
export interface Call {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly toolInput: unknown;
}

/** A piece of the SDK's stream, as the journal of a durable run has it. */
export type Piece =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string; readonly providerOptions?: ProviderOptions }
  | { readonly type: 'file'; readonly base64: string; readonly mediaType: string }
  | { readonly type: 'source'; readonly url?: string; readonly title?: string }
  | (Call & { readonly type: 'call'; readonly ofProvider: boolean; readonly providerOptions?: ProviderOptions })
  | (Call & { readonly type: 'result'; readonly ofProvider: boolean; readonly output: unknown })
  | (Call & { readonly type: 'tool-error'; readonly ofProvider: boolean; readonly error: string })
  | { readonly type: 'denied'; readonly toolCallId: string; readonly toolName: string }
  /** A call that was cut off before it was executed. The model is asked again without it. */
  | { readonly type: 'dropped'; readonly toolCallId: string; readonly toolName: string }
  | (Call & { readonly type: 'approval'; readonly approvalId: string; readonly signature?: string })
  /** The model has answered, and its tools may still run. Where it is missing, the usage comes with the end of the step. */
  | { readonly type: 'usage'; readonly usage: Partial<RunUsage> }
  /** The SDK is about to execute tools of a function, which were approved. */
  | { readonly type: 'approved'; readonly calls: readonly Call[] }
  | { readonly type: 'step-end'; readonly usage: Partial<RunUsage>; readonly cutOff?: CutOff }
  | { readonly type: 'end' }
  /** A crash cut the stream off here. `messageEnds`: the model had called tools, so its next call is a new message. */
  | { readonly type: 'cut'; readonly messageEnds: boolean };

type Result = Extract<Piece, { type: 'result' | 'tool-error' | 'denied' }>;
export type Approval = Extract<Piece, { type: 'approval' }>;

export const isResult = (piece: Piece): piece is Result => ['result', 'tool-error', 'denied'].includes(piece.type);

/** The pieces of each model call; the last list is of the one that has not ended. */
function stepsOf(pieces: readonly Piece[]): Piece[][] {
  const steps: Piece[][] = [[]];
  for (const piece of pieces) {
    steps.at(-1)?.push(piece);
    if (piece.type === 'step-end' || piece.type === 'cut') steps.push([]);
  }
  return steps;
}

/** The pieces of the model call that has not ended. */
const openStep = (pieces: readonly Piece[]): readonly Piece[] => stepsOf(pieces).at(-1) ?? [];

/** Whether the SDK has executed the tool, and not the provider. */
const isLocal = (result: Result): boolean => result.type === 'denied' || !result.ofProvider;

const wasCut = (step: readonly Piece[]): boolean => step.at(-1)?.type === 'cut';

/** Whether the pieces of the open step have its usage. */
export const toldUsage = (pieces: readonly Piece[]): boolean => openStep(pieces).some(({ type }) => type === 'usage');

/** The approvals of the last model call that are open: their tools have no result. */
export function pendingApprovals(pieces: readonly Piece[]): Approval[] {
  const step = stepsOf(pieces).findLast((one) => one.some(({ type }) => type === 'step-end')) ?? [];
  return approvalsIn(step, settledIn(pieces));
}

const approvalsIn = (step: readonly Piece[], settled: ReadonlySet<string>): Approval[] =>
  step.filter((piece) => piece.type === 'approval').filter(({ toolCallId }) => !settled.has(toolCallId));

/** Whether the stream would end here: the SDK calls the model again only for results of tools, and for denials. */
export function isComplete(pieces: readonly Piece[]): boolean {
  if (pieces.some(({ type }) => type === 'end')) return true;
  const last = pieces.findLast(({ type }) => type !== 'cut');
  if (last?.type !== 'step-end') return false;
  const step = stepsOf(pieces).findLast((one) => one.includes(last)) ?? [];
  const hasResult = step.filter(isResult).some(isLocal);
  return !hasResult || pendingApprovals(pieces).length > 0;
}

/** The calls of tools whose execution was cut off. */
export function callsCutOff(pieces: readonly Piece[]): Call[] {
  const step = openStep(pieces);
  const settled = settledIn(pieces);
  for (const piece of step) if (piece.type === 'approval') settled.add(piece.toolCallId);
  return step
    .flatMap((piece): readonly Call[] => {
      if (piece.type === 'approved') return piece.calls;
      return piece.type === 'call' && !piece.ofProvider ? [piece] : [];
    })
    .filter(({ toolCallId }) => !settled.has(toolCallId))
    .map(({ toolCallId, toolName, toolInput }) => ({ toolCallId, toolName, toolInput }));
}

/** The calls that were cut off before a person was asked for the approval. */
export const callsDropped = (pieces: readonly Piece[]): Approval[] => approvalsIn(openStep(pieces), settledIn(pieces));

/** The mark of a crash after the pieces. */
export function cutAfter(pieces: readonly Piece[]): Piece {
  const step = openStep(pieces);
  const called = new Set(step.map((piece) => (piece.type === 'call' && !piece.ofProvider ? piece.toolCallId : '')));
  return { type: 'cut', messageEnds: step.some((piece) => isResult(piece) && called.has(piece.toolCallId)) };
}

/** Whether the last pieces are results of tools that were approved: no model call has begun after them. */
export function endsInApproved(pieces: readonly Piece[]): boolean {
  const step = openStep(pieces);
  return step.some(isResult) && !step.some(({ type }) => type === 'call');
}

/** The ids of the calls that have a result. */
export const settledIn = (pieces: readonly Piece[]): Set<string> =>
  new Set(pieces.filter(isResult).map(({ toolCallId }) => toolCallId));

/** The messages with which the model continues after the pieces. */
export const continued = (messages: readonly ModelMessage[], pieces: readonly Piece[]): ModelMessage[] =>
  joined(messages, messagesOf(pieces));

/** The results of approved tools belong into the message that has the approvals: the SDK then executes only the rest. */
function joined(before: readonly ModelMessage[], after: readonly ModelMessage[]): ModelMessage[] {
  const [last, first] = [before.at(-1), after[0]];
  if (last?.role !== 'tool' || first?.role !== 'tool') return [...before, ...after];
  return [...before.slice(0, -1), { ...last, content: [...last.content, ...first.content] }, ...after.slice(1)];
}

const messagesOf = (pieces: readonly Piece[]): ModelMessage[] => stepsOf(pieces).flatMap(messagesOfStep);

function messagesOfStep(step: readonly Piece[]): ModelMessage[] {
  const results = step.filter(isResult);
  const settled = new Set(
    [...results, ...(wasCut(step) ? [] : step.filter(({ type }) => type === 'approval'))].map((piece) =>
      'toolCallId' in piece ? piece.toolCallId : '',
    ),
  );
  const calls = step.filter((piece) => piece.type === 'call');
  const unanswered = wasCut(step) && !calls.some(({ toolCallId }) => settled.has(toolCallId));
  const content = step.flatMap((piece) => {
    if ('toolCallId' in piece && !settled.has(piece.toolCallId)) return [];
    // A provider refuses reasoning that leads to nothing.
    return piece.type === 'reasoning' && unanswered ? [] : assistantPart(piece);
  });
  const own = new Set(calls.map(({ toolCallId }) => toolCallId));
  const local = results.filter(isLocal);
  return [
    ...toolMessage(local.filter(({ toolCallId }) => !own.has(toolCallId))),
    ...(content.length > 0 ? [{ role: 'assistant' as const, content: merged(content) }] : []),
    ...toolMessage(local.filter(({ toolCallId }) => own.has(toolCallId))),
    ...(unanswered && content.length > 0 ? [{ role: 'user' as const, content: goOn }] : []),
  ];
}

function assistantPart(piece: Piece): AssistantPart[] {
  switch (piece.type) {
    case 'text':
    case 'reasoning':
      return [piece];
    case 'file':
      return [{ type: 'file', data: piece.base64, mediaType: piece.mediaType }];
    case 'call': {
      const { toolCallId, toolName, toolInput, ofProvider, providerOptions } = piece;
      return [
        {
          type: 'tool-call',
          toolCallId,
          toolName,
          input: toolInput,
          ...(ofProvider && { providerExecuted: true }),
          ...(providerOptions && { providerOptions }),
        },
      ];
    }
    case 'approval': {
      const { approvalId, toolCallId, signature } = piece;
      return [{ type: 'tool-approval-request', approvalId, toolCallId, ...(signature && { signature }) }];
    }
    case 'result':
    case 'tool-error':
      return piece.ofProvider ? [toolResult(piece)] : [];
    default:
      return [];
  }
}

/** Neighbouring texts as one. */
function merged(content: readonly AssistantPart[]): AssistantPart[] {
  const parts: AssistantPart[] = [];
  for (const part of content) {
    const last = parts.at(-1);
    if (part.type === 'text' && last?.type === 'text')
      parts[parts.length - 1] = { ...last, text: last.text + part.text };
    else parts.push(part);
  }
  return parts;
}

const toolMessage = (results: readonly Result[]): ToolModelMessage[] =>
  results.length === 0 ? [] : [{ role: 'tool', content: results.map(toolResult) }];

function toolResult(piece: Result): ToolResult {
  const { toolCallId, toolName } = piece;
  return { type: 'tool-result', toolCallId, toolName, output: outputOf(piece) };
}

function outputOf(piece: Result): ToolResult['output'] {
  if (piece.type === 'denied') return { type: 'execution-denied' };
  if (piece.type === 'tool-error') return { type: 'error-text', value: piece.error };
  const { output } = piece;
  if (typeof output === 'string') return { type: 'text', value: output };
  return { type: 'json', value: JSON.parse(JSON.stringify(output ?? null)) };
}
