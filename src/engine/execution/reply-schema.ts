import { errorOf, fail } from '../../core/errors.ts';
import { parsed } from '../../core/json.ts';
import { receiveMessage } from '../../core/messages.ts';
import type { Principal } from '../../core/principal.ts';
import { valueTextOf } from '../../core/reply.ts';
import type { Message } from '../../schema/message.ts';
import type { AwaitRequest, AwaitResume, AwaitResumeInput } from '../../schema/run.ts';
import { type Checked, checkAgainst, checkSchema } from '../agents/json-schema.ts';

/** Characters of a reply that may be checked against a schema; a longer reply is refused. */
const maxReplyChars = 1024 * 1024;

/**
 * Called when the agent asks, so that an invalid schema is an error of the agent, and not of the client that replies.
 * @throws RivuletError `await_invalid` that names the agent and the problem of its schema
 */
export function checkReplySchema(agent: string, schema: Record<string, unknown>): void {
  try {
    checkSchema(schema);
  } catch (error) {
    throw fail('await_invalid', agent, `await.schema: ${errorOf(error).message}`);
  }
}

/** The fields of a reply that the server sets. */
type Received = Pick<AwaitResume, 'channel' | 'principal' | 'received_at'>;

/**
 * A client's reply as the agent gets it, with the id of the question that it answers. The server sets the
 * reply's channel, principal and time; those that a client sends are dropped.
 * @throws RivuletError `await_type_mismatch`, `question_mismatch`, `validation_failed` that names the path, `too_busy`
 */
export function receiveReply(
  request: AwaitRequest,
  { type = 'message', channel: _, principal: __, received_at: ___, ...input }: AwaitResumeInput & Received,
  channel: string,
  now: string,
  principal?: Principal,
): AwaitResume {
  if (type !== request.type) throw fail('await_type_mismatch', request.type, type);
  const { id = input.id } = request;
  if (input.id !== undefined && id !== undefined && input.id !== id) throw fail('question_mismatch', id, input.id);
  if (input.message === undefined) throw fail('validation_failed', 'await_resume.message', 'is required');
  const message = receiveMessage(input.message, 'await_resume.message', now);
  if (request.schema !== undefined) checkAgainst(request.schema, checkedValue(message));
  const by = principal === undefined || principal.kind === 'anonymous' ? {} : { principal: principal.id };
  return { ...input, type: request.type, message, ...(id !== undefined && { id }), channel, ...by, received_at: now };
}

/** The value that a schema applies to, and its path in the request. */
function checkedValue(message: Message): Checked {
  const { text, index } = valueTextOf(message);
  const path = index === undefined ? 'await_resume.message.parts' : `await_resume.message.parts[${index}].content`;
  if (text.length > maxReplyChars) throw fail('validation_failed', path, `is longer than ${maxReplyChars} characters`);
  return { path, value: parsed(text), chars: text.length };
}
