import { Observable, type Subscriber } from 'rxjs';
import { fail } from '../../core/errors.ts';
import type { Extras } from '../../core/store.ts';
import type { Event } from '../../schema/event.ts';
import type { AwaitRequest, AwaitResume, RunStatus } from '../../schema/run.ts';
import type { Feed } from './feed.ts';
import type { Recorder, StatusChange } from './recorder.ts';

/** What awaits need of the execution that they belong to. */
export interface Asker {
  readonly recorder: Recorder;
  /** Of a durable run: gives the replies, in this life and in a later one. */
  readonly feed: Feed | undefined;
  readonly worked: () => number;
  /** Runs work outside of any agent's async context. */
  readonly outside: (work: () => void) => void;
  readonly fail: (error: unknown) => void;
  changeStatus(status: RunStatus, change?: StatusChange): void;
  /** The event that completes the message that is open, if one is. */
  closing(): Event[];
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
 * What an agent asks, and the replies on their way to it: taken by the run, durable, then the agent's. A run awaits one
 * thing at a time, so questions that an agent asks at once are put one after the other. Each has a number.
 */
export class Awaits {
  readonly #asker: Asker;
  /** Asked, and not replied to yet; the first is put, or will be next. */
  #open: Question[] = [];
  /** The question that the run awaits the reply to, and its id. */
  #asked: (Question & { readonly id: string }) | undefined;
  /** The agent does not wait any more for what the run awaits, and the log does not say so yet. */
  #dropped = false;
  #taken: Taken[] = [];
  #closed = false;
  #count = 0;

  constructor(asker: Asker) {
    this.#asker = asker;
    asker.feed?.connect(this);
  }

  get hasQuestion(): boolean {
    return this.#asked !== undefined;
  }

  /** Whether the agent waits for a reply. */
  get waiting(): boolean {
    return this.#open.length > 0 || this.#taken.length > 0;
  }

  /** The agent's side: asks when subscribed to, emits the reply. */
  ask(request: AwaitRequest): Observable<AwaitResume> {
    return new Observable((subscriber) => {
      const question = { request, subscriber };
      this.#open.push(question);
      this.next();
      this.#asker.feed?.agentActed();
      return () => {
        this.#open = this.#open.filter((one) => one !== question);
        if (this.#closed || this.#asked?.subscriber !== subscriber) return;
        // The agent raced it against a timer, say.
        this.#asked = undefined;
        this.#dropped = true;
        this.next();
      };
    });
  }

  /** Puts the next question, or goes on where none is asked any more, unless the log that is repeated has others first. */
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
   * The run takes a reply, with what is kept beside it. The agent gets it when it is durable.
   * @throws RivuletError `not_awaiting`, `question_mismatch`
   */
  reply(reply: AwaitResume, extras: Extras): void {
    const { recorder, feed, worked, outside, changeStatus } = this.#asker;
    const { run, log } = recorder;
    const asked = run.status === 'awaiting' ? this.#asked : undefined;
    if (asked === undefined || recorder.replay !== undefined) throw fail('not_awaiting', run.run_id, run.status);
    if (reply.id !== undefined && reply.id !== asked.id) throw fail('question_mismatch', asked.id, reply.id);
    const text = JSON.stringify(reply);
    this.#toTake(reply);
    log.attach(extras);
    if (feed !== undefined) recorder.journal(`{"at":${log.row.last},"ms":${Math.round(worked())},"reply":${text}}`);
    try {
      changeStatus('in-progress');
      recorder.count(text.length);
    } catch (error) {
      this.#asker.fail(error);
      return;
    }
    outside(() => {
      log.flushed().then(
        () => this.#answer(),
        () => undefined, // the log has told the engine, which calls lost()
      );
    });
  }

  /** A reply that an earlier life of the run took. */
  acceptJournaled(reply: AwaitResume): void {
    this.#toTake(reply);
    this.#asker.changeStatus('in-progress');
  }

  /** The agent gets the reply that was taken first. */
  deliverReply(): void {
    const taken = this.#taken.shift();
    if (taken === undefined) return;
    taken.subscriber.next(taken.reply);
    taken.subscriber.complete();
    this.next();
  }

  /** Where an earlier life ended before its agent got a reply, it gets it now. */
  goLive(): void {
    for (const _ of this.#taken) this.#answer();
    this.next();
  }

  /** The run is over, or leaves: nothing is put, and nothing that the agent gives up on changes it. */
  close(): void {
    this.#closed = true;
  }

  /** What the agent still waits for ends with the reason. */
  refuse(reason: Error): void {
    for (const { subscriber } of [...this.#open, ...this.#taken]) subscriber.error(reason);
    this.#open = [];
    this.#taken = [];
    this.#asked = undefined;
  }

  /** An agent that completes has given up on what it asked. */
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
    const { recorder, changeStatus, closing } = this.#asker;
    if (this.#dropped) {
      if (recorder.run.status === 'awaiting') {
        if (!recorder.fits([recorder.statusEvent('in-progress')])) return;
        changeStatus('in-progress');
      }
      this.#dropped = false;
    }
    const [question] = this.#open;
    if (question === undefined || this.#asked !== undefined || this.#taken.length > 0) return;
    if (recorder.run.status !== 'in-progress') return;
    const id = String(this.#count + 1);
    const await_request = { ...question.request, id };
    const closed = closing();
    if (!recorder.fits([...closed, recorder.statusEvent('awaiting', { await_request })])) return;
    for (const event of closed) recorder.emit(event);
    this.#count += 1;
    this.#asked = { ...question, id };
    changeStatus('awaiting', { await_request });
  }
}
