import type { Observable } from 'rxjs';
import type { AgentContext, AgentManifestInput } from '../core/agent.ts';
import { AgentError, errorOf, fail } from '../core/errors.ts';
import { partProblem } from '../core/messages.ts';
import { compile, open } from '../core/validate.ts';
import { checkSchema } from '../engine/agents/json-schema.ts';
import type { ErrorBody } from '../schema/error.ts';
import type { GenericEvent } from '../schema/event.ts';
import {
  type FinishReason,
  type Message,
  MessageInput,
  type MessagePart,
  MessagePartInput,
} from '../schema/message.ts';
import { AwaitRequest, RunUsage } from '../schema/run.ts';

/**
 * What a remote run has emitted, as the journal of a durable run has it. `at` is the position in the remote stream after this
 * piece; only some servers have positions. `of` is the artifact of a part, for servers without positions.
 */
export type Piece = { readonly at?: string; readonly of?: string } & (
  | { readonly type: 'run'; readonly id: string; readonly session?: string }
  | { readonly type: 'part'; readonly part: MessagePart }
  /** `reason`: why the message is not whole. */
  | { readonly type: 'end-of-message'; readonly reason?: FinishReason }
  /** The server sends the artifact `of` again, from its beginning. */
  | { readonly type: 'replaced' }
  | { readonly type: 'generic'; readonly event: GenericEvent }
  | { readonly type: 'question'; readonly id: string; readonly request: AwaitRequest }
  | { readonly type: 'completed'; readonly usage?: RunUsage }
  | { readonly type: 'failed'; readonly error: ErrorBody; readonly usage?: RunUsage }
);

/** The field of an `end-of-message`. */
export const reasonField = (reason: FinishReason | undefined) => reason && { reason };

/** A server of a protocol, and one agent of it. */
export interface RemoteAgent {
  readonly manifest: () => Promise<AgentManifestInput>;
  /** A run of the agent for one call; nothing is sent before it is begun. */
  readonly run: (call: RemoteCall) => RemoteRun;
}

export interface RemoteCall {
  readonly context: AgentContext;
  readonly input: readonly Message[];
  /** Equal for all attempts of this call, also after a crash, and for no other call. */
  readonly key: string;
  /** The session of the other server. */
  readonly session: string;
}

/** The pieces of all methods end with a question, or with the end of the run. */
export interface RemoteRun {
  /** Makes the run, and follows it. Called again after a crash, it makes no second one. */
  begin(): Observable<Piece>;
  /** Follows the run after the pieces that it was given. */
  follow(): Observable<Piece>;
  /** Answers the last question, and follows the run when subscribed to. It answers once, also after a crash. */
  reply(message: Message): Observable<Piece>;
  /** Called with each piece that the caller has received, or has read from its journal. */
  onPiece(piece: Piece): void;
  /** Ends the run. Does nothing if it was never made. */
  cancel(): Promise<void>;
  /** The error of a connection in the words of an AgentError. */
  errorOf(thrown: unknown): unknown;
}

const { schema, tool, expires_at } = AwaitRequest.properties;
const Question = open({ message: MessageInput, schema, tool, expires_at });

const validPart = compile(MessagePartInput, 'part');
const validQuestion = compile(Question, 'question');
const validUsage = compile(RunUsage, 'usage');

/** @throws AgentError `remote_invalid` that names an invalid field: the check of the output would blame the local agent */
export function checkPiece(piece: Piece): void {
  try {
    if (piece.type === 'part') checkPart(piece.part);
    if (piece.type === 'question') checkQuestion(piece.request);
  } catch (error) {
    const what = piece.type === 'question' ? 'asked an invalid question' : 'answered with an invalid part';
    throw new AgentError('remote_invalid', `The remote agent ${what}. ${errorOf(error).message}`);
  }
}

function checkPart(part: MessagePart): void {
  const problem = Object.keys(part).length === 0 ? 'has no field' : partProblem(validPart(part));
  if (problem !== undefined) throw fail('validation_failed', 'part', problem);
}

function checkQuestion(request: AwaitRequest): void {
  const { message, schema } = validQuestion(request);
  message.parts.forEach(checkPart);
  if (schema !== undefined) checkSchema(schema);
}

/** The usage of a remote run. An invalid usage is dropped: the output of the run is valid without it. */
export function usageIn(given: unknown): RunUsage | undefined {
  try {
    return validUsage(given);
  } catch {
    return undefined;
  }
}
