import type { Extras } from '../../core/store.ts';
import type { AwaitRequest, AwaitResume, RunStatus } from '../../schema/run.ts';
import { type Question, Questions } from './questions.ts';
import type { Change, Recorder } from './recorder.ts';

/** What answers need of the execution that they belong to. */
export interface Asker {
  readonly recorder: Recorder;
  /** Whether replies are kept, for a later life of the run. */
  readonly durable: boolean;
  /** Whether nothing that happens matters to the run any more. */
  readonly over: () => boolean;
  /** Does the run's own business: what goes wrong there ends the run. */
  guard(work: () => void): void;
  become(status: RunStatus, change?: Change): void;
  /** Completes the message that is open. */
  close(): void;
}

interface Taken {
  readonly question: Question;
  readonly reply: AwaitResume;
}

/** What a run asks, and the replies on their way to its agent: taken by the run, durable, then the agent's. */
export class Answers {
  readonly #asker: Asker;
  readonly #questions: Questions;
  /** Replies that an earlier life took, and that the agent has yet to get. */
  readonly #taken: Taken[] = [];

  constructor(asker: Asker) {
    this.#asker = asker;
    this.#questions = new Questions(
      (request) => asker.guard(() => this.#await(request)),
      () => asker.guard(() => this.#goOn()),
    );
  }

  get questions(): Questions {
    return this.#questions;
  }

  /** The run takes a reply, with what is kept beside it; false where it awaits none. The agent gets it when it is durable. */
  take(reply: AwaitResume, extras: Extras): boolean {
    const { recorder, durable } = this.#asker;
    const question = recorder.run.status === 'awaiting' ? this.#questions.take() : undefined;
    if (question === undefined) return false;
    recorder.log.attach(extras);
    if (durable) recorder.journal({ at: recorder.log.row.last, reply });
    this.#asker.become('in-progress');
    recorder.log.flushed().then(
      () => this.#answer({ question, reply }),
      () => undefined, // the log has told the engine, which calls lost()
    );
    return true;
  }

  /** A reply that an earlier life of the run took, at the place where it did. */
  takeAgain(reply: AwaitResume): void {
    // Not at once: the agent is still being subscribed to, and may be about to ask more at the same time.
    queueMicrotask(() => {
      const question = this.#questions.take();
      if (question === undefined) return;
      const { recorder } = this.#asker;
      this.#asker.guard(() => {
        this.#asker.become('in-progress');
        this.#taken.push({ question, reply });
        // Where that life ended before its agent got the reply, it gets it now.
        recorder.replay?.whenLive(() => {
          const taken = this.#taken.shift();
          if (taken !== undefined) this.#answer(taken);
        });
        recorder.proceed();
      });
    });
  }

  /** The agent gets the reply that was taken first, where an earlier life's got it. */
  giveAgain(): void {
    const taken = this.#taken.shift();
    if (taken !== undefined) this.#give(taken);
  }

  #answer(taken: Taken): void {
    const { recorder, durable, over } = this.#asker;
    if (durable && !over()) recorder.journal({ at: recorder.log.row.last, answered: true });
    this.#give(taken);
  }

  #give({ question: { subscriber }, reply }: Taken): void {
    subscriber.next(reply);
    subscriber.complete();
    this.#asker.guard(() => {
      this.#questions.next();
      this.#asker.recorder.proceed();
    });
  }

  #await(await_request: AwaitRequest): void {
    const { recorder } = this.#asker;
    if (recorder.run.status !== 'in-progress') return;
    this.#asker.close();
    this.#asker.become('awaiting', { await_request });
    recorder.proceed();
  }

  /** Nobody waits any more for what the run awaits. */
  #goOn(): void {
    const { recorder } = this.#asker;
    if (recorder.run.status !== 'awaiting') return;
    this.#asker.become('in-progress');
    recorder.proceed();
    this.#questions.next();
  }
}
