import { Observable, type Subscriber } from 'rxjs';
import type { AwaitRequest, AwaitResume } from '../../schema/run.ts';

export interface Question {
  readonly request: AwaitRequest;
  readonly subscriber: Subscriber<AwaitResume>;
}

/**
 * What an agent has asked and nobody has answered. A run awaits one thing at a time, so questions that
 * an agent asks at once are put one after the other.
 */
export class Questions {
  readonly #open: Question[] = [];
  readonly #put: (request: AwaitRequest) => void;
  readonly #dropped: () => void;
  #asked: Question | undefined;

  /** `put` asks a question when its turn comes; `dropped` says that nobody waits any more for the one that was put. */
  constructor(put: (request: AwaitRequest) => void, dropped: () => void) {
    this.#put = put;
    this.#dropped = dropped;
  }

  /** The agent's side: asks when subscribed to, emits the reply. */
  ask(request: AwaitRequest): Observable<AwaitResume> {
    return new Observable((subscriber) => {
      const question = { request, subscriber };
      this.#open.push(question);
      this.next();
      return () => {
        const at = this.#open.indexOf(question);
        if (at >= 0) this.#open.splice(at, 1);
        if (this.#asked !== question) return;
        // The agent raced it against a timer, say.
        this.#asked = undefined;
        this.#dropped();
      };
    });
  }

  /** Puts the next question, unless one is put already. */
  next(): void {
    const [question] = this.#open;
    if (this.#asked !== undefined || question === undefined) return;
    this.#asked = question;
    this.#put(question.request);
  }

  /** Takes the question that was put, to be answered. */
  take(): Question | undefined {
    const question = this.#asked;
    this.#asked = undefined;
    if (question !== undefined) this.#open.splice(this.#open.indexOf(question), 1);
    return question;
  }

  /** Forgets them all: the run is over. */
  clear(): void {
    this.#asked = undefined;
    this.#open.length = 0;
  }
}
