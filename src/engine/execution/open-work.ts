/**
 * What a durable run's agent has under way beside its questions: steps, and calls of other agents. A run may leave memory
 * only while that is nothing. Work outside of steps and calls cannot be seen. A branch of the agent that has been seen
 * beside an open question may go on with such work, so its run stays in memory.
 */
export class OpenWork {
  /** The number of the question that is open; 0 for none. */
  readonly #question: () => number;
  #count = 0;
  /** The question beside which a branch was seen last. It may be of the same branch, and withdrawn in the same turn. */
  #seenBeside = 0;
  #hasBranches = false;
  /** The question that was open when the agent was quiet last. */
  #quietQuestion = 0;

  constructor(question: () => number) {
    this.#question = question;
  }

  get none(): boolean {
    return this.#count === 0;
  }

  /** Whether nothing but questions can be under way, as far as that can be seen. */
  get onlyQuestions(): boolean {
    return this.none && !this.#hasBranches;
  }

  begin(): void {
    this.#count += 1;
  }

  /**
   * A step or call is over. Unless the agent has left it, its branch goes on, beside the question that was open before the
   * agent got the end of the work.
   */
  end(goesOn: boolean, question = this.#question()): void {
    this.#count -= 1;
    if (goesOn && question > 0) this.#seenBeside = question;
  }

  /** The agent has emitted something. Without an open step or call, a branch beside the question has. */
  emitted(): void {
    if (this.none && this.#quietQuestion > 0 && this.#quietQuestion === this.#question())
      this.#seenBeside = this.#quietQuestion;
  }

  /** The agent is quiet. A branch that was seen beside a question is another branch, if the question is still open now. */
  quiet(): void {
    this.#quietQuestion = this.#question();
    if (this.#seenBeside > 0 && this.#seenBeside === this.#quietQuestion) this.#hasBranches = true;
  }
}
