import type { AwaitResume } from '../../schema/run.ts';
import type { Recorder } from './recorder.ts';
import { type Delivery, type JournalEntry, openSteps, type Replay } from './replay.ts';

export type StepDelivery = Extract<Delivery, { step: string }>;

/** A step that the agent is subscribed to. */
interface StepReceiver {
  deliver(gift: StepDelivery): void;
  /** Reads what the journal only names, before it is given. */
  readonly load?: ((value: unknown) => Promise<unknown>) | undefined;
  /** Does the work; called when the run is live. */
  begin(): void;
}

/** What takes replies, and gives them to the agent. */
interface ReplyReceiver {
  /** Whether a question is open. */
  readonly hasQuestion: boolean;
  /** Takes a reply of the journal. */
  acceptJournaled(reply: AwaitResume): void;
  /** Gives the agent the reply that was taken first. */
  deliverReply(): void;
  /** The run is live: what was taken, and not given, is put into the feed. */
  goLive(): void;
}

/** Something for the agent, and how the journal has it. */
interface QueuedDelivery {
  readonly delivery: Delivery;
  readonly text: string;
}

interface FeedHost {
  readonly recorder: Recorder;
  /** Milliseconds at work. */
  readonly worked: () => number;
  /** Runs work outside of any agent's async context. */
  readonly outside: (work: () => void) => void;
  /** Ends the run. */
  readonly fail: (error: unknown) => void;
  /** Records what was held back, as far as it can be recorded now. */
  readonly recordReordered: () => void;
}

/** Characters of the journal that are given in one go. */
const maxDeliveredChars = 64 * 1024;
/** Turns of the event loop that an agent may go on for, before it is given something all the same. */
const maxActiveTurns = 4;

/**
 * Whatever a durable run's agent is given from outside, in the first life as in a later one: the values of steps, and
 * replies. All that has come is given in one go, and the next only when the agent is quiet, which means that its
 * microtasks and immediates are done. So what the agent does follows from the order of the journal alone; it does not
 * depend on how many microtasks one branch of it needs and how many another. One turn of the event loop is the cost.
 */
export class Feed {
  readonly #host: FeedHost;
  readonly #steps = new Map<string, StepReceiver>();
  /** Steps whose work has begun, and is not at its end. */
  readonly #openSteps: Set<string>;
  #replyReceiver: ReplyReceiver | undefined;
  #queue: QueuedDelivery[] = [];
  #queuedChars = 0;
  #next = 0;
  #scheduled = false;
  #closed = false;
  /** What shows that the agent did something since the last turn; and for how many turns it went on. */
  #activity = 0;
  #seenActivity = -1;
  #activeTurns = 0;
  #waiters: (() => void)[] = [];
  #loading = false;

  /** `journal` is that of an earlier life. */
  constructor(host: FeedHost, journal: readonly JournalEntry[] = []) {
    this.#host = host;
    this.#openSteps = openSteps(journal);
  }

  connect(replies: ReplyReceiver): void {
    this.#replyReceiver = replies;
  }

  /** Characters that wait for the agent. */
  get backlog(): number {
    return this.#queuedChars;
  }

  /** Whether the agent is subscribed to a step. */
  get hasSteps(): boolean {
    return this.#steps.size > 0;
  }

  /** Resolves when something was given; undefined where nothing waits that the agent could take now. */
  get dueDelivery(): Promise<void> | undefined {
    const entry = this.#host.recorder.replay?.dueEntry();
    if (entry === undefined || !this.#canDeliver(entry)) return undefined;
    return this.whenDelivered();
  }

  /** Resolves when something was given, or the run is over. */
  whenDelivered(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** A step was subscribed to; its work begins when the run is live. Returns how to leave. */
  join(step: string, receiver: StepReceiver): () => void {
    this.#steps.set(step, receiver);
    this.#activity += 1;
    if (this.#host.recorder.replay === undefined) receiver.begin();
    else this.agentActed();
    return () => {
      if (this.#steps.get(step) === receiver) this.#steps.delete(step);
    };
  }

  /** Has something given to the agent, when its turn comes. */
  enqueue(delivery: Delivery, text: string): void {
    if (this.#closed) return;
    this.#queue.push({ delivery, text });
    this.#queuedChars += text.length;
    this.#schedule();
  }

  /** The agent did something, so that more may be due. */
  agentActed(): void {
    this.#activity += 1;
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.#queue = [];
    this.#steps.clear();
    this.#resolveWaiters();
  }

  #schedule(): void {
    if (this.#scheduled || this.#closed || this.#loading) return;
    if (this.#next >= this.#queue.length && this.#host.recorder.replay === undefined) return;
    this.#scheduled = true;
    this.#host.outside(() => void setImmediate(this.#pump));
  }

  readonly #pump = (): void => {
    this.#scheduled = false;
    if (this.#closed) return;
    const mark = this.#activity + this.#host.recorder.progress;
    if (mark !== this.#seenActivity && this.#activeTurns < maxActiveTurns) {
      this.#seenActivity = mark;
      this.#activeTurns += 1;
      this.#schedule();
      return;
    }
    this.#activeTurns = 0;
    try {
      const { replay } = this.#host.recorder;
      if (replay === undefined) this.#deliverNew();
      else this.#repeat(replay);
    } catch (error) {
      this.#host.fail(error);
    }
  };

  /** Gives the journal's next line; when there is none left, the run is live. */
  #repeat(replay: Replay): void {
    this.#host.recordReordered();
    if (this.#closed) return;
    if (replay.live) {
      this.#host.recorder.goLive();
      this.#replyReceiver?.goLive();
      for (const step of [...this.#steps.values()]) step.begin();
      this.#resolveWaiters();
      this.agentActed();
      return;
    }
    const entry = replay.dueEntry();
    if (entry === undefined || !this.#canDeliver(entry)) return;
    replay.markDelivered();
    this.#host.recorder.progress += 1;
    if ('reply' in entry) this.#replyReceiver?.acceptJournaled(entry.reply);
    if ('give' in entry) this.#redeliver(entry.give);
    this.#resolveWaiters();
    this.agentActed();
  }

  #canDeliver(entry: JournalEntry): boolean {
    if ('give' in entry) return entry.give.every((gift) => !('step' in gift) || this.#steps.has(gift.step));
    return this.#replyReceiver?.hasQuestion === true;
  }

  #redeliver(gifts: readonly Delivery[]): void {
    const loading = gifts.map((gift) => this.#load(gift));
    if (loading.every((one) => one === undefined)) {
      for (const gift of gifts) this.#deliver(gift);
      return;
    }
    this.#loading = true;
    Promise.all(loading.map((one, index) => one ?? gifts[index])).then(
      (loaded) => {
        this.#loading = false;
        for (const gift of loaded) if (gift !== undefined) this.#deliver(gift);
        this.agentActed();
      },
      (error) => this.#host.fail(error),
    );
  }

  #load(gift: Delivery): Promise<Delivery> | undefined {
    if (!('value' in gift)) return undefined;
    const load = this.#steps.get(gift.step)?.load;
    return load?.(gift.value[0]).then((value) => ({ step: gift.step, value: [value] }));
  }

  #deliverNew(): void {
    const gifts: Delivery[] = [];
    const texts: string[] = [];
    let chars = 0;
    while (this.#next < this.#queue.length && chars < maxDeliveredChars) {
      const put = this.#queue[this.#next];
      this.#next += 1;
      if (put === undefined) break;
      this.#queuedChars -= put.text.length;
      // The agent has left that step since.
      if ('step' in put.delivery && !this.#steps.has(put.delivery.step)) continue;
      chars += put.text.length;
      gifts.push(put.delivery);
      texts.push(put.text);
    }
    if (this.#next >= this.#queue.length) [this.#queue, this.#next] = [[], 0];
    if (gifts.length > 0) {
      this.#writeJournal(`"give":[${texts.join(',')}]`);
      this.#host.recorder.noteProgress();
    }
    for (const gift of gifts) this.#deliver(gift);
    this.#resolveWaiters();
    this.agentActed();
  }

  /** Writes a line of the journal; `rest` is what comes after its place and time. */
  #writeJournal(rest: string): void {
    const { recorder, worked } = this.#host;
    recorder.journal(`{"at":${recorder.log.row.last},"ms":${Math.round(worked())},${rest}}`);
  }

  /** A step's work begins: should the process die, the journal shows that it was under way. */
  stepBegan(step: string): void {
    if (this.#closed || this.#openSteps.has(step)) return;
    this.#openSteps.add(step);
    this.#writeJournal(`"begun":${JSON.stringify(step)}`);
  }

  /** The agent has left a step before its end. */
  stepLeft(step: string): void {
    if (!this.#closed && this.#openSteps.delete(step)) this.#writeJournal(`"left":${JSON.stringify(step)}`);
  }

  #deliver(gift: Delivery): void {
    if (this.#closed) return;
    if ('done' in gift || 'error' in gift) this.#openSteps.delete(gift.step);
    if ('step' in gift) this.#steps.get(gift.step)?.deliver(gift);
    else this.#replyReceiver?.deliverReply();
  }

  #resolveWaiters(): void {
    const waiting = this.#waiters;
    this.#waiters = [];
    for (const resolve of waiting) resolve();
  }
}
