import { Observable, type Subscriber } from 'rxjs';
import { fail } from '../../core/errors.ts';
import type { Extras } from '../../core/ports/run-store.ts';
import type { AwaitRequest, AwaitResume, RunStatus } from '../../schema/run.ts';
import { guarded } from '../unhandled.ts';
import type { Feed } from './feed.ts';
import type { Recorder, StatusChange } from './recorder.ts';

/** What awaits need of the execution that they belong to. */
export interface Asker {
  readonly recorder: Recorder;
  /** In a durable run: gives the agent its replies, in this execution and after a recovery. */
  readonly feed: Feed | undefined;
  /** Runs work outside of the async context of the caller. */
  readonly outside: (work: () => void) => void;
  readonly fail: (error: unknown) => void;
  changeStatus(status: RunStatus, change?: StatusChange): void;
}

interface Question {
  readonly request: AwaitRequest;
  readonly subscriber: Subscriber<AwaitResume>;
}

interface Taken {
  readonly subscriber: Subscriber<AwaitResume>;
  readonly reply: AwaitResume;
}

/**
 * The questions of an agent, and the replies: a reply is taken by the run, becomes durable, and is then given to the
 * agent. A run awaits one reply at a time, so questions asked at once are put one after the other. Each has a number.
 */
export class Awaits {
  readonly #asker: Asker;
  /** Questions without a reply. One is put, or the first is the next to be put. */
  #open: Question[] = [];
  /** The question that the run awaits a reply to, and its id. */
  #asked: (Question & { readonly id: string }) | undefined;
  /** The agent has unsubscribed from the question, and the log does not show it yet. */
  #dropped = false;
  #taken: Taken[] = [];
  #closed = false;
  #count = 0;

  constructor(asker: Asker) {
    this.#asker = asker;
    asker.feed?.connect(this);
  }

  get question(): number {
    return Number(this.#asked?.id ?? 0);
  }

  /** Whether the agent waits for a reply. */
  get waiting(): boolean {
    return this.#open.length > 0 || this.#taken.length > 0;
  }

  /** Asks when the agent subscribes, and emits the reply. */
  ask(request: AwaitRequest): Observable<AwaitResume> {
    return new Observable((subscriber) => {
      const question = { request, subscriber };
      this.#open.push(question);
      this.next();
      this.#asker.feed?.agentActed();
      return () => {
        this.#open = this.#open.filter((one) => one !== question);
        if (this.#closed || this.#asked?.subscriber !== subscriber) return;
        // Such as an agent that races the question against a timer.
        this.#asked = undefined;
        this.#dropped = true;
        this.next();
      };
    });
  }

  /** Puts the next question, or goes on where there is none. During a replay only if the log has that event next. */
  next(): void {
    if (this.#closed) return;
    const { recorder, feed, fail } = this.#asker;
    const { progress } = recorder;
    try {
      this.#next();
    } catch (error) {
      fail(error);
    }
    if (recorder.progress !== progress) feed?.agentActed();
  }

  /**
   * The run takes a reply and commits it with `extras`. The agent gets the reply when it is durable.
   * @throws RivuletError `not_awaiting`, `question_mismatch`
   */
  reply(reply: AwaitResume, extras: Extras): void {
    const { recorder, feed, outside, changeStatus } = this.#asker;
    const { run, log } = recorder;
    feed?.work.quiet();
    const asked = run.status === 'awaiting' ? this.#asked : undefined;
    if (asked === undefined || recorder.replay !== undefined) throw fail('not_awaiting', run.run_id, run.status);
    if (reply.id !== undefined && reply.id !== asked.id) throw fail('question_mismatch', asked.id, reply.id);
    const text = JSON.stringify(reply);
    this.#toTake(reply);
    log.attach(extras);
    feed?.journal(`"reply":${text}`);
    try {
      changeStatus('in-progress', { await_resume: reply });
      recorder.count(text.length);
    } catch (error) {
      this.#asker.fail(error);
      return;
    }
    // A durable agent gets it in its place: what comes later must not overtake it while it is committed.
    if (feed !== undefined) this.#answer();
    else
      outside(() => {
        log.flushed().then(
          () => this.#answer(),
          () => undefined, // the log reports its failure to the engine, which drops the execution
        );
      });
  }

  /** Takes a reply of the journal. */
  acceptJournaled(reply: AwaitResume): void {
    this.#toTake(reply);
    this.#asker.changeStatus('in-progress', { await_resume: reply });
  }

  /** Gives the agent the oldest reply that was taken. */
  deliverReply(): void {
    const taken = this.#taken.shift();
    if (taken === undefined) return;
    // A copy: the run keeps the reply as the client sent it.
    taken.subscriber.next(structuredClone(taken.reply));
    taken.subscriber.complete();
    this.next();
  }

  /** The replay is over: gives the agent the replies that it did not get before the recovery. */
  goLive(): void {
    for (const _ of this.#taken) this.#answer();
    this.next();
  }

  /** The run is final or leaves this node: no question is put or withdrawn any more. */
  close(): void {
    this.#closed = true;
  }

  /** Ends all that the agent waits for with the reason. */
  refuse(reason: Error, onTeardownError: (error: unknown) => void): void {
    const waiting = [...this.#open, ...this.#taken];
    this.#open = [];
    this.#taken = [];
    this.#asked = undefined;
    for (const { subscriber } of waiting) guarded(() => subscriber.error(reason), onTeardownError);
  }

  /** The agent has completed: its open questions are withdrawn. */
  forget(): void {
    this.#closed = true;
    if (this.#asker.recorder.run.status === 'awaiting') this.#asker.changeStatus('in-progress');
  }

  #answer(): void {
    const { feed } = this.#asker;
    if (feed !== undefined) feed.enqueue({ answered: true }, '{"answered":true}');
    else
      try {
        this.deliverReply();
      } catch (error) {
        this.#asker.fail(error);
      }
  }

  #toTake(reply: AwaitResume): void {
    const asked = this.#asked;
    if (asked === undefined) return;
    this.#asked = undefined;
    this.#open = this.#open.filter(({ subscriber }) => subscriber !== asked.subscriber);
    this.#taken.push({ subscriber: asked.subscriber, reply });
  }

  #next(): void {
    const { recorder, changeStatus } = this.#asker;
    if (this.#dropped) {
      if (recorder.run.status === 'awaiting') {
        if (!recorder.fits([recorder.statusEvent('in-progress')])) return;
        changeStatus('in-progress');
      }
      this.#dropped = false;
    }
    if (this.#open.length === 0 || this.#asked !== undefined || this.#taken.length > 0) return;
    if (recorder.run.status !== 'in-progress') return;
    const id = String(this.#count + 1);
    const closed = recorder.closing();
    const askedBy = ({ request }: Question): StatusChange => ({ await_request: { ...request, id } });
    // Calls side by side may ask in another order in a replay.
    const question = this.#open.find((one) =>
      recorder.fits([...closed, recorder.statusEvent('awaiting', askedBy(one))]),
    );
    if (question === undefined) return;
    for (const event of closed) recorder.emit(event);
    this.#count += 1;
    this.#asked = { ...question, id };
    changeStatus('awaiting', askedBy(question));
  }
}
