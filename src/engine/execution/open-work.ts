import type { RunTimes } from './times.ts';

/**
 * What a durable run's agent has under way beside its questions: steps, and calls of other agents. A run may leave memory
 * only while its agent does nothing but sleep. Work outside of steps and calls cannot be seen. A branch of the agent that was
 * seen beside an open question may do such work, so its run stays in memory.
 */
export class OpenWork {
  /** The number of the question that is open; 0 for none. */
  readonly #question: () => number;
  readonly #times: Pick<RunTimes, 'onAsleep'>;
  #count = 0;
  /** When the steps of `context.sleep` end: milliseconds since 1970. */
  readonly #sleeps = new Set<{ readonly until: number }>();
  #asleep = false;
  /** The question beside which a branch was seen last. The same branch may have asked it, and withdraw it in the same turn. */
  #seenBeside = 0;
  #hasBranches = false;
  /** The question that was open when the agent was quiet last. */
  #quietQuestion = 0;

  constructor(question: () => number, times: Pick<RunTimes, 'onAsleep'>) {
    this.#question = question;
    this.#times = times;
  }

  /** Nothing, or only sleep. */
  get none(): boolean {
    return this.#count === this.#sleeps.size;
  }

  /** Whether the agent sleeps, and does nothing else, as far as that can be seen. */
  get asleep(): boolean {
    return this.#asleep;
  }

  /** When the agent wakes: milliseconds since 1970; undefined where it does not sleep. */
  get wakesAt(): number | undefined {
    return this.#sleeps.size === 0 ? undefined : Math.min(...[...this.#sleeps].map(({ until }) => until));
  }

  /** Whether nothing but questions can be under way, as far as that can be seen. */
  get onlyQuestions(): boolean {
    return this.none && !this.#hasBranches;
  }

  begin(): void {
    this.#count += 1;
    this.#update();
  }

  /** A step that has begun sleeps. Returns the function to call when it does not any more. */
  sleep(until: number): () => void {
    const one = { until };
    this.#sleeps.add(one);
    this.#update();
    return () => {
      this.#sleeps.delete(one);
      this.#update();
    };
  }

  #update(): void {
    const asleep = this.#sleeps.size > 0 && this.none;
    if (asleep === this.#asleep) return;
    this.#asleep = asleep;
    this.#times.onAsleep(asleep);
  }

  /**
   * A step or call is over. Unless the agent has left it, the branch of the step goes on, beside the question that was open
   * when the step ended.
   */
  end(goesOn: boolean, question = this.#question()): void {
    this.#count -= 1;
    this.#update();
    if (goesOn && question > 0) this.#seenBeside = question;
  }

  /** The agent has emitted something. If no step or call is open, a branch beside the question has emitted it. */
  emitted(): void {
    if (this.none && this.#quietQuestion > 0 && this.#quietQuestion === this.#question())
      this.#seenBeside = this.#quietQuestion;
  }

  /** The agent is quiet. A branch that was seen beside a question is not the one that asks, if the question is still open. */
  quiet(): void {
    this.#quietQuestion = this.#question();
    if (this.#seenBeside > 0 && this.#seenBeside === this.#quietQuestion) this.#hasBranches = true;
  }
}
