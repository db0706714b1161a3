import { Observable, type Subscriber } from 'rxjs';
import type { AgentOutput } from '../../core/agent.ts';
import type { Message } from '../../schema/message.ts';
import type { Output } from './scope.ts';

/** The output of a called agent whose answer is awaited. An interrupted message is left out of the answer: see `collected`. */
export class AnswerOutput implements Output {
  readonly #interrupted: () => Message;
  #subscriber: Subscriber<AgentOutput> | undefined;
  emitted = 0;

  constructor(agent: string, now: () => string) {
    this.#interrupted = () => {
      const time = now();
      return {
        role: `agent/${agent}`,
        parts: [],
        finish_reason: 'interrupted',
        created_at: time,
        completed_at: time,
      };
    };
  }

  /** Passes on what the agent emits. */
  of(said: Observable<AgentOutput>): Observable<AgentOutput> {
    return new Observable((subscriber) => {
      this.#subscriber = subscriber;
      return said.subscribe({
        next: (output) => {
          this.emitted += 1;
          subscriber.next(output);
        },
        error: (error) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
  }

  interrupt(): void {
    this.#subscriber?.next(this.#interrupted());
  }
}
