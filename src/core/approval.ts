import { map, type Observable } from 'rxjs';
import type { AwaitResume } from '../schema/run.ts';
import type { AgentContext } from './agent.ts';
import { replyValue } from './reply.ts';
import { approvalParts } from './said.ts';

/** What a person has decided, and why, where the reply says so: the model gets the reason. */
export interface Approval {
  readonly approved: boolean;
  readonly reason?: string;
}

/** What a model is told of a call that was not allowed, without a reason. */
export const notAllowed = 'The user did not allow this call.';

/** What people and the model are told of a tool whose process ended while it ran, and which is not executed again. */
export const unknownOutcome = 'The process ended while this tool ran. Whether it took effect is unknown.';

/** What a durable agent is told of an agent whose process ended after a tool had begun, and which is not called again. */
export const unknownOutcomeOf = (agent: string): string =>
  `The process ended while agent ${agent} ran a tool. Whether it took effect is unknown.`;

/** The question whether a tool may run, for `context.await`. It has the call as its JSON part. */
export const approvalQuestion = (tool_name: string, tool_input: unknown): Parameters<AgentContext['await']> => [
  { role: 'agent', parts: approvalParts(tool_name, tool_input) },
  { schema: { type: 'boolean', title: `Run ${tool_name}` } },
];

/** The decision in a reply to that question. */
export function decisionIn(reply: AwaitResume): Approval {
  const reason: unknown = Reflect.get(reply.message, 'reason');
  return { approved: replyValue(reply) === true, ...(typeof reason === 'string' && reason !== '' && { reason }) };
}

/** Asks whether a tool may run; emits the answer. */
export const askApproval = (context: AgentContext, tool_name: string, tool_input: unknown): Observable<Approval> =>
  context.await(...approvalQuestion(tool_name, tool_input)).pipe(map(decisionIn));
