import type { Observer } from 'rxjs';
import type { AgentOutput } from '../../core/agent.ts';
import { guarded } from './guarded.ts';
import { PairJoiner } from './pair-joiner.ts';

/**
 * Subscribes an execution to its agent. It reports what a teardown of the agent throws. RxJS throws that error into the
 * code that completes the agent, such as a timer, where it would end the process.
 */
export class AgentSubscriber extends PairJoiner {
  readonly #onTeardownError: (error: unknown) => void;

  constructor(execution: Observer<AgentOutput>, onTeardownError: (error: unknown) => void) {
    super(execution);
    this.#onTeardownError = onTeardownError;
  }

  override unsubscribe(): void {
    guarded(() => super.unsubscribe(), this.#onTeardownError);
  }
}
