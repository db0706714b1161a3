import { type Input, toMessages } from '../client/input.ts';
import type { Agent } from '../core/agent.ts';
import { historyOf } from '../core/history.ts';
import { textOf } from '../core/parts.ts';
import { isFinal } from '../core/run-state.ts';
import type { Message, MessageInput, MessagePart } from '../schema/message.ts';
import { MemoryStore } from '../stores/memory/memory-store.ts';
import {
  begin,
  cast,
  type EngineTools,
  type Followed,
  follow,
  keepAlive,
  openSession,
  type Scene,
  startEngine,
  stateOf,
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
  /** The session after the run: `history` and `state` are options of the next `runAgent` of the conversation. */
  readonly history: (Message | MessageInput)[];
  readonly state: unknown;
}

/**
 * Runs an agent to its end, or to a question without an answer, on an engine in memory that listens on no port. A run
 * that fails is a result as well: `run.error` says why.
 * @throws RivuletError where no run can be made of the input, or a reply does not fit its question
 */
export const runAgent = (agent: Agent, input: Input, options: RunAgentOptions = {}): Promise<RanAgent> =>
  keepAlive(() => runOnce(agent, input, options));

async function runOnce(agent: Agent, input: Input, options: RunAgentOptions): Promise<RanAgent> {
  const { answers, history = [], limits, signal } = options;
  const store = new MemoryStore();
  const engine = await startEngine(cast(agent, options), store, limits, options);
  let run_id: string | undefined;
  // A run that is over meanwhile needs no cancel.
  const cancel = (): void => void (run_id && engine.cancel(run_id).catch(() => undefined));
  signal?.addEventListener('abort', cancel);
  try {
    const session_id = await openSession(engine, options);
    run_id = await begin(engine, agent, input, session_id, options);
    if (signal?.aborted) cancel();
    const followed = await follow(engine, run_id, answers);
    const { output, status } = followed.run;
    return {
      ...followed,
      text: textOf(output),
      parts: output.flatMap(({ parts }) => parts),
      history: isFinal(status)
        ? [...history, ...toMessages(input), ...historyOf(followed.run, new Date().toISOString())]
        : [...history],
      state: await stateOf(store, session_id),
    };
  } finally {
    signal?.removeEventListener('abort', cancel);
    await engine.stop();
  }
}
