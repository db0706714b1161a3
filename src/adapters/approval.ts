import { map, type Observable } from 'rxjs';
import type { AgentContext } from '../core/agent.ts';
import { textOf } from '../core/parts.ts';
import { approvalParts } from '../core/said.ts';
import type { AwaitResume } from '../schema/run.ts';
import { parsed } from './conversation.ts';

/** What a person has decided, and why, where the reply says so: the model gets the reason. */
export interface Approval {
  readonly approved: boolean;
  readonly reason?: string;
}

/** Asks whether a tool may run; emits the answer. The question has the call as its JSON part. */
export const askApproval = (context: AgentContext, tool_name: string, tool_input: unknown): Observable<Approval> =>
  context
    .await(
      { role: 'agent', parts: approvalParts(tool_name, tool_input) },
      { schema: { type: 'boolean', title: `Run ${tool_name}` } },
    )
    .pipe(
      map((reply) => {
        const reason: unknown = Reflect.get(reply.message, 'reason');
        return { approved: replyValue(reply) === true, ...(typeof reason === 'string' && reason !== '' && { reason }) };
      }),
    );

/** The value of a reply: its JSON part, or else its text, which is parsed where it is JSON. */
export function replyValue({ message }: AwaitResume): unknown {
  const part = message.parts.find(({ content_type = '' }) => /^application\/json\b/i.test(content_type));
  return parsed(part?.content ?? textOf(message));
}
