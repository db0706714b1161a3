import { Type } from '@sinclair/typebox';
import { AgentError, errorOf, fail } from '../core/errors.ts';
import { partProblem } from '../core/messages.ts';
import { compile } from '../core/validate.ts';
import { checkSchema } from '../engine/json-schema.ts';
import { MessageInput, type MessagePart, MessagePartInput } from '../schema/message.ts';
import { AwaitRequest, RunUsage } from '../schema/run.ts';
import type { Piece } from './remote-run.ts';

const { schema, tool, expires_at } = AwaitRequest.properties;
const Question = Type.Object({ message: MessageInput, schema, tool, expires_at }, { additionalProperties: true });

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

/** The usage of a remote run; undefined where it is none, because the run has its output all the same. */
export function usageIn(given: unknown): RunUsage | undefined {
  try {
    return validUsage(given);
  } catch {
    return undefined;
  }
}
