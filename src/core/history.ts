import type { Message } from '../schema/message.ts';
import type { Run } from '../schema/run.ts';

/** The messages of a conversation's turn: the output, with each question and its reply in their places. */
export function transcriptOf({ output, questions = [] }: Pick<Run, 'output' | 'questions'>): Message[] {
  const messages: Message[] = [];
  let at = 0;
  for (const { request, reply, position } of questions) {
    for (; at < position; at += 1) messages.push(...output.slice(at, at + 1));
    messages.push(request.message);
    if (reply !== undefined) messages.push(reply.message);
  }
  return [...messages, ...output.slice(at)];
}

/**
 * What a run that is over adds to its session's history after its input. The answer of a run that was cancelled or has failed
 * says so: its last message, or an empty one where the run ended before it or at a question.
 */
export function historyOf(run: Pick<Run, 'agent_name' | 'status' | 'output' | 'questions'>, now: string): Message[] {
  const { agent_name, status, output } = run;
  const messages = transcriptOf(run);
  if (status !== 'cancelled' && status !== 'failed') return messages;
  const said = output.at(-1);
  const isLast = said !== undefined && said === messages.at(-1) && said.finish_reason === undefined;
  const { completed_at = now, ...last } = isLast ? said : { role: `agent/${agent_name}`, parts: [], created_at: now };
  return [...(isLast ? messages.slice(0, -1) : messages), { ...last, completed_at, finish_reason: status }];
}
