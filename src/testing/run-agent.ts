import type { Input } from '../client/input.ts';
import type { Agent } from '../core/agent.ts';
import { textOf } from '../core/parts.ts';
import type { MessagePart } from '../schema/message.ts';
import { MemoryStore } from '../stores/memory/memory-store.ts';
import {
  begin,
  cast,
  type EngineTools,
  type Followed,
  follow,
  openSession,
  type Scene,
  startEngine,
} from './engine.ts';

export interface RunAgentOptions extends Scene, EngineTools {
  /** Cancels the run. */
  readonly signal?: AbortSignal;
}

/** A run of a test, with its output in the forms that tests ask for most. */
export interface RanAgent extends Followed {
  /** The text of the output, with a blank line between messages. */
  readonly text: string;
  readonly parts: MessagePart[];
}

/**
 * Runs an agent to its end, or to a question without an answer, on an engine in memory that listens on no port. A run
 * that fails is a result as well: `run.error` says why.
 * @throws RivuletError where no run can be made of the input, or a reply does not fit its question
 */
export async function runAgent(agent: Agent, input: Input, options: RunAgentOptions = {}): Promise<RanAgent> {
  const { answers, history, calls, limits, signal } = options;
  const engine = await startEngine(cast(agent, calls), new MemoryStore(), limits, options);
  let run_id: string | undefined;
  // A run that is over meanwhile needs no cancel.
  const cancel = (): void => void (run_id && engine.cancel(run_id).catch(() => undefined));
  signal?.addEventListener('abort', cancel);
  try {
    run_id = await begin(engine, agent, input, await openSession(engine, history));
    if (signal?.aborted) cancel();
    const followed = await follow(engine, run_id, answers);
    const { output } = followed.run;
    return { ...followed, text: textOf(output), parts: output.flatMap(({ parts }) => parts) };
  } finally {
    signal?.removeEventListener('abort', cancel);
    await engine.stop();
  }
}
