import { type Observer, Subscriber } from 'rxjs';
import type { AgentOutput } from '../../core/agent.ts';

/**
 * Subscribes an execution to its agent. What a teardown of the agent throws is reported: RxJS throws it into the code that
 * completes the agent, and where that is a timer, it would end the process.
 */
export class AgentSubscriber extends Subscriber<AgentOutput> {
  readonly #onTeardownError: (error: unknown) => void;

  constructor(execution: Observer<AgentOutput>, threw: (error: unknown) => void) {
    super(execution);
    this.#onTeardownError = threw;
  }

  override unsubscribe(): void {
    try {
      super.unsubscribe();
    } catch (error) {
      this.#onTeardownError(error);
    }
  }
}
