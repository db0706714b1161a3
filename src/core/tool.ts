import type { MessagePart } from '../schema/message.ts';
import type { AgentContext, Awaitable, ToolOptions } from './agent.ts';
import { approvalQuestion, decisionIn, notAllowed, unknownOutcome } from './approval.ts';
import { AgentError, errorOf } from './errors.ts';
import { isObject } from './json.ts';
import { trajectory } from './parts.ts';

/** What a tool has returned, as the journal of a durable run has it. */
interface Ended<T> {
  readonly started_at: string;
  readonly ended_at: string;
  readonly output: T;
}

/** What the journal has while the work of a call that is not repeatable is done. */
const begun = { begun: true } as const;

/** A call of a tool, as `context.tool` gets it. */
interface ToolCall<Input, Output> extends ToolOptions {
  readonly name: string;
  readonly input: Input;
  readonly work: (input: Input) => Output | PromiseLike<Output>;
}

/**
 * A call of a tool: emits a part when it begins and one with its result, and returns what `work` has returned. The work is a
 * step of the run.
 * @throws AgentError `tool_denied`; AgentError `tool_call_unknown` and Error of the work, after a part with `tool_error`
 */
export async function* callTool<Input extends object, Output>(
  context: Pick<AgentContext, 'step' | 'await' | 'committed'>,
  tool_call_id: string,
  { name, input, work, approval = false, repeatable = true }: ToolCall<Input, Output>,
): AsyncGenerator<MessagePart, Output> {
  const call = { tool_name: name, tool_call_id };
  const shown = Object.fromEntries(Object.entries(input));
  yield trajectory({ ...call, tool_input: shown });
  if (approval) {
    const { approved, reason } = decisionIn(await context.await(...approvalQuestion(name, shown)));
    if (!approved) {
      yield trajectory({ ...call, tool_output: { denied: true, ...(reason !== undefined && { reason }) } });
      throw new AgentError('tool_denied', reason ?? notAllowed);
    }
  }
  const begin = async (): Promise<Ended<Output>> => {
    const started_at = new Date().toISOString();
    const output = await work(input);
    return { started_at, ended_at: new Date().toISOString(), output };
  };
  async function* beginOnce(): AsyncGenerator<typeof begun | Ended<Output>> {
    yield begun;
    await context.committed();
    yield await begin();
  }
  const again = (before: readonly (typeof begun | Ended<Output>)[]): [] => {
    // JSON leaves out an output that is undefined.
    if (before.some((one) => 'ended_at' in one)) return [];
    throw new AgentError('tool_call_unknown', unknownOutcome);
  };
  let ended: Ended<Output>;
  try {
    // The last value of the step is the result.
    ended = await (repeatable
      ? context.step(name, begin)
      : (context.step(name, beginOnce, again) as Awaitable<Ended<Output>>));
  } catch (error) {
    yield trajectory({ ...call, tool_error: errorOf(error).message });
    throw error;
  }
  const { output, ...times } = ended;
  yield trajectory({ ...call, ...times, tool_output: isObject(output) ? output : { value: output ?? null } });
  return output;
}
