import type { AwaitResume } from '../../schema/run.ts';
import type { Recorder } from './recorder.ts';
import { type Delivery, type JournalEntry, openSteps, type Replay } from './replay.ts';

export type StepDelivery = Extract<Delivery, { step: string }>;

/** A step that the agent is subscribed to. */
interface StepReceiver {
  deliver(delivery: StepDelivery): void;
  /** Loads a value that the journal only refers to. */
  readonly load?: ((value: unknown) => Promise<unknown>) | undefined;
  /** Starts the step's work; called when the run is live. */
  begin(): void;
}

/** Accepts replies, and delivers them to the agent. */
interface ReplyReceiver {
  /** Whether the run awaits a reply. */
  readonly hasQuestion: boolean;
  /** Accepts a reply of the journal. */
  acceptJournaled(reply: AwaitResume): void;
  /** Delivers the oldest accepted reply to the agent. */
  deliverReply(): void;
  /** The run is live: accepted replies that are not delivered yet are enqueued. */
  goLive(): void;
}

/** A delivery, and its JSON for the journal. */
interface QueuedDelivery {
  readonly delivery: Delivery;
  readonly text: string;
}

interface FeedHost {
  readonly recorder: Recorder;
  /** Milliseconds that the run has worked. */
  readonly worked: () => number;
  /** Runs work outside of the async context of the caller. */
  readonly outside: (work: () => void) => void;
  /** Ends the run. */
  readonly fail: (error: unknown) => void;
  /** Records buffered output that is next in the log. */
  readonly recordReordered: () => void;
  /** The replay is over. */
  readonly onLive: () => void;
}

/** Characters of the journal after which the next turn delivers the rest. */
const maxDeliveredChars = 64 * 1024;
/** Turns of the event loop in which an agent may stay active before the next delivery. */
const maxActiveTurns = 4;

/**
 * Delivers the values of steps and the replies to a durable run's agent, in the first execution and in replays. It
 * delivers everything that is queued at once, and then waits until the agent is quiet: until its microtasks and
 * immediates are done. So the agent's behaviour depends on the order of the journal alone, and not on the number of
 * microtasks that each of its branches needs. The cost is one turn of the event loop for each delivery.
 */
export class Feed {
  readonly #host: FeedHost;
  readonly #steps = new Map<string, StepReceiver>();
  /** Steps whose work has begun and not ended. */
  readonly #openSteps: Set<string>;
  #replyReceiver: ReplyReceiver | undefined;
  #queue: QueuedDelivery[] = [];
  #queuedChars = 0;
  #next = 0;
  /** How many deliveries were ever queued, and how many of them have left the queue. */
  #queued = 0;
  #taken = 0;
  #scheduled = false;
  #closed = false;
  /** Counts the agent's actions; with the recorder's progress, that shows whether it was active in the last turn. */
  #activity = 0;
  #seenActivity = -1;
  #activeTurns = 0;
  #waiters: (() => void)[] = [];
  /** In the order of their counts of `#taken`. */
  readonly #journalWaiters: { readonly count: number; resolve(isJournaled: boolean): void }[] = [];
  #loading = false;

  /** `journal` is that of earlier executions. */
  constructor(host: FeedHost, journal: readonly JournalEntry[] = []) {
    this.#host = host;
    this.#openSteps = openSteps(journal);
  }

  connect(replies: ReplyReceiver): void {
    this.#replyReceiver = replies;
  }

  /** Characters that are queued for the agent. */
  get backlog(): number {
    return this.#queuedChars;
  }

  /** Whether the agent is subscribed to a step. */
  get hasSteps(): boolean {
    return this.#steps.size > 0;
  }

  /** Resolves at the next delivery; undefined where the agent is not ready for the journal's next entry. */
  get dueDelivery(): Promise<void> | undefined {
    const entry = this.#host.recorder.replay?.dueEntry();
    if (entry === undefined || !this.#canDeliver(entry)) return undefined;
    return this.whenDelivered();
  }

  /**
   * Resolves to true when everything that is queued now is in the journal, and to false where the run ends before;
   * undefined where nothing is queued.
   */
  whenJournaled(): Promise<boolean> | undefined {
    const count = this.#queued;
    if (this.#taken >= count) return undefined;
    if (this.#closed) return Promise.resolve(false);
    return new Promise((resolve) => this.#journalWaiters.push({ count, resolve }));
  }

  /** Resolves at the next delivery, or when the run ends. */
  whenDelivered(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /**
   * Adds a step that the agent subscribed to; its work begins when the run is live. Returns an unsubscribe function.
   */
  join(step: string, receiver: StepReceiver): () => void {
    this.#steps.set(step, receiver);
    this.#activity += 1;
    if (this.#host.recorder.replay === undefined) receiver.begin();
    else this.agentActed();
    return () => {
      if (this.#steps.get(step) === receiver) this.#steps.delete(step);
    };
  }

  /** Queues a delivery. */
  enqueue(delivery: Delivery, text: string): void {
    if (this.#closed) return;
    this.#queue.push({ delivery, text });
    this.#queued += 1;
    this.#queuedChars += text.length;
    this.#schedule();
  }

  /** The agent did something, so the next delivery may be due. */
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

  /** Delivers the journal's next entry; after the last one, the run is live. */
  #repeat(replay: Replay): void {
    this.#host.recordReordered();
    if (this.#closed) return;
    if (replay.live) {
      this.#host.recorder.goLive();
      this.#host.onLive();
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
    this.#countAgain(entry);
    if ('reply' in entry) this.#replyReceiver?.acceptJournaled(entry.reply);
    if ('give' in entry) this.#redeliver(entry.give);
    this.#resolveWaiters();
    this.agentActed();
  }

  /** Counts what the journal has as the first execution did. The limits of a run are for all of its executions. */
  #countAgain(entry: JournalEntry): void {
    const { recorder } = this.#host;
    if ('reply' in entry) recorder.count(JSON.stringify(entry.reply).length);
    if (!('give' in entry)) return;
    for (const delivery of entry.give) if ('step' in delivery) recorder.count(JSON.stringify(delivery).length);
  }

  #canDeliver(entry: JournalEntry): boolean {
    if ('give' in entry) return entry.give.every((delivery) => !('step' in delivery) || this.#steps.has(delivery.step));
    return this.#replyReceiver?.hasQuestion === true;
  }

  #redeliver(deliveries: readonly Delivery[]): void {
    const loading = deliveries.map((delivery) => this.#load(delivery));
    if (loading.every((one) => one === undefined)) {
      for (const delivery of deliveries) this.#deliver(delivery);
      return;
    }
    this.#loading = true;
    Promise.all(loading.map((one, index) => one ?? deliveries[index])).then(
      (loaded) => {
        this.#loading = false;
        for (const delivery of loaded) if (delivery !== undefined) this.#deliver(delivery);
        this.agentActed();
      },
      (error) => this.#host.fail(error),
    );
  }

  #load(delivery: Delivery): Promise<Delivery> | undefined {
    if (!('value' in delivery)) return undefined;
    const load = this.#steps.get(delivery.step)?.load;
    return load?.(delivery.value[0]).then((value) => ({ step: delivery.step, value: [value] }));
  }

  #deliverNew(): void {
    const deliveries: Delivery[] = [];
    const texts: string[] = [];
    let chars = 0;
    while (this.#next < this.#queue.length && chars < maxDeliveredChars) {
      const queued = this.#queue[this.#next];
      this.#next += 1;
      if (queued === undefined) break;
      this.#taken += 1;
      this.#queuedChars -= queued.text.length;
      // The agent has unsubscribed from that step meanwhile.
      if ('step' in queued.delivery && !this.#steps.has(queued.delivery.step)) continue;
      chars += queued.text.length;
      deliveries.push(queued.delivery);
      texts.push(queued.text);
    }
    if (this.#next >= this.#queue.length) [this.#queue, this.#next] = [[], 0];
    if (deliveries.length > 0) {
      this.#writeJournal(`"give":[${texts.join(',')}]`);
      this.#host.recorder.noteProgress();
    }
    for (const delivery of deliveries) this.#deliver(delivery);
    this.#resolveWaiters();
    this.agentActed();
  }

  /** Appends a line to the journal; `rest` is what follows its position and time. */
  #writeJournal(rest: string): void {
    const { recorder, worked } = this.#host;
    recorder.journal(`{"at":${recorder.log.row.last},"ms":${Math.round(worked())},${rest}}`);
  }

  /** A step's work begins: after a crash, the journal shows that it was under way. */
  stepBegan(step: string): void {
    if (this.#closed || this.#openSteps.has(step)) return;
    this.#openSteps.add(step);
    this.#writeJournal(`"begun":${JSON.stringify(step)}`);
  }

  /** The agent has unsubscribed from a step before its end. */
  stepLeft(step: string): void {
    if (!this.#closed && this.#openSteps.delete(step)) this.#writeJournal(`"left":${JSON.stringify(step)}`);
  }

  #deliver(delivery: Delivery): void {
    if (this.#closed) return;
    if ('done' in delivery || 'error' in delivery) this.#openSteps.delete(delivery.step);
    if ('step' in delivery) this.#steps.get(delivery.step)?.deliver(delivery);
    else this.#replyReceiver?.deliverReply();
  }

  #resolveWaiters(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const resolve of waiters) resolve();
    if (this.#journalWaiters.length > 0) this.#resolveJournalWaiters();
  }

  #resolveJournalWaiters(): void {
    const all = this.#journalWaiters;
    const later = this.#closed ? -1 : all.findIndex(({ count }) => count > this.#taken);
    const done = all.splice(0, later < 0 ? all.length : later);
    for (const { count, resolve } of done) resolve(count <= this.#taken);
  }
}
