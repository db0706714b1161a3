import type { MessagePart } from '../schema/message.ts';
import type { AgentContext } from './agent.ts';
import { errorOf } from './errors.ts';
import { isObject } from './json.ts';
import { trajectory } from './parts.ts';

/** What a tool has returned, as the journal of a durable run has it. */
interface Ended<T> {
  readonly started_at: string;
  readonly ended_at: string;
  readonly output: T;
}

/**
 * A call of a tool: emits a part when it begins and one with its result, and returns what `work` has returned. The work is a
 * step of the run.
 * @throws Error of the work, after a part with `tool_error`
 */
export async function* callTool<Input extends object, Output>(
  step: AgentContext['step'],
  tool_call_id: string,
  { name, input, work }: { name: string; input: Input; work: (input: Input) => Output | PromiseLike<Output> },
): AsyncGenerator<MessagePart, Output> {
  const call = { tool_name: name, tool_call_id };
  yield trajectory({ ...call, tool_input: Object.fromEntries(Object.entries(input)) });
  const begin = async (): Promise<Ended<Output>> => {
    const started_at = new Date().toISOString();
    const output = await work(input);
    return { started_at, ended_at: new Date().toISOString(), output };
  };
  let ended: Ended<Output>;
  try {
    ended = await step(name, begin);
  } catch (error) {
    yield trajectory({ ...call, tool_error: errorOf(error).message });
    throw error;
  }
  const { output, ...times } = ended;
  yield trajectory({ ...call, ...times, tool_output: isObject(output) ? output : { value: output ?? null } });
  return output;
}
