import type { LeaseHolder } from '../../core/ports/lease.ts';
import type { Extras } from '../../core/ports/run-store.ts';
import { addUsage } from '../../core/usage.ts';
import type { AwaitResume, RunUsage } from '../../schema/run.ts';
import { type Delivery, entryLine, type JournalEntry } from '../log/journal.ts';
import { OpenWork } from './open-work.ts';
import type { Recorder } from './recorder.ts';
import type { Replay } from './replay.ts';
import { RunHold } from './run-hold.ts';
import type { RunTimes } from './times.ts';
import type { RunTokens } from './tokens.ts';

export type StepDelivery = Extract<Delivery, { step: string }>;

/** A step that the agent is subscribed to. */
interface StepReceiver {
  deliver(delivery: StepDelivery): void;
  /** Loads a value that the journal only refers to. */
  readonly load?: ((value: unknown) => Promise<unknown>) | undefined;
  /** Starts the step's work; called when the run is live. */
  begin(): void;
  /** Whether it only sleeps, so that nothing outside follows from it. */
  readonly sleeps?: boolean | undefined;
  /** Whether it began in the work of another step. That work may have an effect with what it is given. */
  readonly isInside: boolean;
}

/** Accepts replies, and delivers them to the agent. */
interface ReplyReceiver {
  /** The number of the question that the run awaits a reply to; 0 for none. */
  readonly question: number;
  /** Accepts a reply of the journal. */
  acceptJournaled(reply: AwaitResume): void;
  /** Delivers the oldest accepted reply to the agent. */
  deliverReply(): void;
  /** The run is live: accepted replies that are not delivered yet are enqueued. */
  goLive(): void;
}

/** A delivery, its JSON for the journal, which is empty where the journal has it, and what is stored with it. */
interface QueuedDelivery {
  readonly delivery: Delivery;
  readonly text: string;
  readonly extras?: Extras | undefined;
  /** Made on demand. Resolves to true when the delivery is in the journal, and to false where it is dropped. */
  isJournaled?: Promise<boolean>;
  /** Settles that. */
  onLeft?: (isJournaled: boolean) => void;
}

interface FeedHost {
  readonly recorder: Recorder;
  readonly dispatcher: LeaseHolder;
  readonly times: RunTimes;
  readonly tokens: RunTokens;
  /** Runs work outside of the async context of the caller. */
  readonly outside: (work: () => void) => void;
  /** Ends the run. */
  readonly fail: (error: unknown) => void;
  /** The agent is quiet during a replay: records buffered output that is next in the log. @throws RivuletError `replay_diverged` */
  readonly onQuietReplay: () => void;
  /** The replay is over. */
  readonly onLive: () => void;
  /** The replay has come to the cancel of the run. */
  readonly onCancelled: (reason: string | undefined) => void;
}

/** Characters of the journal after which the next turn delivers the rest. */
const maxDeliveredChars = 64 * 1024;
/** Turns of the event loop in which an agent may stay active before the next delivery. */
const maxActiveTurns = 4;

/**
 * Delivers the values of steps and the replies to a durable run's agent, in the first execution and in replays. It
 * delivers everything that is queued at once, and then waits until the agent is quiet: until its microtasks and
 * immediates are done. So the agent's behaviour depends on the order of the journal alone, and not on the number of
 * microtasks that each of its branches needs.
 */
export class Feed {
  readonly #host: FeedHost;
  readonly #steps = new Map<string, StepReceiver>();
  /**
   * What the journal has of inner steps, which began in the work of another step, by their ids. An inner step gets it when the
   * work of the outer step is done again. An outer step whose end is in the journal does no work, and has no inner steps.
   */
  readonly #inside = new Map<string, StepDelivery[]>();
  /** Resolves when that work has got all that was given to it so far. */
  #deliveredInside: Promise<unknown> = Promise.resolve();
  /** What the work of steps had used in earlier executions. */
  readonly #usedIn = new Map<string, RunUsage>();
  /** Steps whose work has begun and not ended. */
  readonly #running = new Set<string>();
  /** The step that is given something now, and the question that was open before. */
  #given: { readonly step: string; readonly question: number } | undefined;
  readonly work: OpenWork;
  readonly hold: RunHold;
  #replyReceiver: ReplyReceiver | undefined;
  #queue: QueuedDelivery[] = [];
  #queuedChars = 0;
  #next = 0;
  /** Counts what has to be durable before the agent's next work: deliveries, attempts and the cancel. */
  #needed = 0;
  /** How many of these are durable, as far as is known. */
  #durable = 0;
  #scheduled = false;
  #state: 'open' | 'draining' | 'cancelled' | 'closed' = 'open';
  /** Counts the agent's actions; with the recorder's progress, that shows whether it was active in the last turn. */
  #activity = 0;
  #seenActivity = -1;
  #activeTurns = 0;
  #waiters: (() => void)[] = [];
  /** The run has ended before the agent was given everything that was queued. */
  #hasLost = false;
  #loading = false;
  /** Whether a reply is queued that may not be durable so far. */
  #hasReply = false;

  constructor(host: FeedHost) {
    this.#host = host;
    this.hold = new RunHold(host.recorder.log, host.dispatcher);
    this.work = new OpenWork(() => this.#replyReceiver?.question ?? 0, host.times);
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

  /**
   * Resolves when work of the agent may begin; undefined where it may begin at once. Everything that the agent was given has
   * to be durable first, so that work which a crash repeats uses the same values. Never resolves once the node stops, or has
   * lost the run.
   */
  whenWorkMayBegin(): Promise<void> | undefined {
    // Because the work may be what stops the process.
    if (this.#host.recorder.countAttempt()) this.#needed += 1;
    const needed = this.#needed;
    if (this.#durable >= needed && this.hold.holds && this.#state === 'open') return undefined;
    return new Promise((resolve) => {
      void this.hold.whenHeld().then(() => {
        this.#durable = Math.max(this.#durable, needed);
        if (this.#state === 'open') resolve();
      });
    });
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
    if (this.#hasLost) return Promise.resolve(false);
    const last = this.#queue.at(-1);
    if (last === undefined) return undefined;
    last.isJournaled ??= new Promise((resolve) => {
      last.onLeft = resolve;
    });
    return last.isJournaled;
  }

  /** Resolves at the next delivery, when no step is left or runs, or when the run ends. */
  whenDelivered(): Promise<void> {
    if (this.#state === 'closed') return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /**
   * Adds a step that the agent subscribed to; its work begins when the run is live. Returns an unsubscribe function.
   */
  join(step: string, receiver: StepReceiver): () => void {
    this.#steps.set(step, receiver);
    this.work.begin();
    this.#activity += 1;
    if (this.#host.recorder.replay !== undefined) this.agentActed();
    else if (this.#inside.has(step)) this.#giveAgain(step, receiver);
    else this.#begin(step, receiver);
    return () => {
      if (this.#steps.get(step) !== receiver) return;
      this.#steps.delete(step);
      // An agent that leaves a step while it is given a value goes on with that value.
      this.work.end(this.#given?.step === step, this.#given?.question);
      const ran = this.#running.delete(step);
      if (this.#steps.size === 0 || (ran && this.#running.size === 0)) this.#resolveWaiters();
    };
  }

  #begin(step: string, receiver: StepReceiver): void {
    const begin = (): void => {
      if (this.#state !== 'open' || this.#steps.get(step) !== receiver) return;
      this.#running.add(step);
      receiver.begin();
    };
    const allowed = receiver.sleeps ? undefined : this.whenWorkMayBegin();
    if (allowed === undefined) begin();
    // What another step has begun in this turn may have held the process for longer than its lease.
    else void allowed.then(() => (this.hold.holds ? begin() : this.#begin(step, receiver)));
  }

  /** Gives a step in the work of another one what the journal has of it. What its own work has not ended goes on. */
  #giveAgain(step: string, receiver: StepReceiver): void {
    const given = this.#inside.get(step) ?? [];
    this.#inside.delete(step);
    Promise.all(given.map((one) => this.#load(one, receiver) ?? one)).then(
      (loaded) => {
        for (const one of loaded) this.enqueue(one, '');
        if (given.some((one) => 'done' in one || 'error' in one)) return;
        void this.whenJournaled()
          ?.then(() => this.#deliveredInside)
          .then(() => this.#begin(step, receiver));
      },
      (error) => this.#host.fail(error),
    );
  }

  /** The run is cancelled: the agent is given nothing any more, and begins no work until it cleans up. */
  cancel(reason?: string): void {
    this.journal(reason === undefined ? '"cancelled":true' : `"cancelled":true,"reason":${JSON.stringify(reason)}`);
    this.#state = 'cancelled';
    this.#dropQueue();
  }

  /** The agent of the cancelled run cleans up. The cancel has to be durable before that, as what the agent is given has. */
  cleanUp(): void {
    if (this.#state === 'closed') return;
    this.#state = 'open';
    this.#dropQueue();
    this.#needed += 1;
  }

  #dropQueue(): void {
    const dropped = this.#queue.slice(this.#next);
    this.#queue = [];
    this.#next = 0;
    this.#queuedChars = 0;
    for (const { onLeft } of dropped) onLeft?.(false);
  }

  /** Resolves when the agent is subscribed to no step. */
  async whenIdle(): Promise<void> {
    while (this.#steps.size > 0 && this.#state !== 'closed') await this.whenDelivered();
  }

  /** From now on no step begins. Resolves when those that run have ended and are journaled. */
  async drained(): Promise<void> {
    if (this.#state === 'open') this.#state = 'draining';
    while (this.#running.size > 0 && this.#state !== 'closed') await this.whenDelivered();
  }

  /** Queues a delivery. `extras` are stored in the commit that keeps it. */
  enqueue(delivery: Delivery, text: string, extras?: Extras): void {
    if (this.#state === 'closed' || this.#state === 'cancelled') return;
    this.#queue.push({ delivery, text, extras });
    if ('answered' in delivery) this.#hasReply = true;
    this.#queuedChars += text.length;
    this.#schedule();
  }

  /** The agent did something, so the next delivery may be due. */
  agentActed(): void {
    this.#activity += 1;
    this.#schedule();
  }

  close(): void {
    this.#state = 'closed';
    this.#hasLost = this.#queue.length > 0;
    this.#dropQueue();
    this.#steps.clear();
    this.#running.clear();
    this.#resolveWaiters();
  }

  #schedule(): void {
    if (this.#scheduled || this.#state === 'closed' || this.#loading) return;
    if (this.#next >= this.#queue.length && this.#host.recorder.replay === undefined) return;
    this.#scheduled = true;
    this.#host.outside(() => void setImmediate(this.#pump));
  }

  readonly #pump = (): void => {
    this.#scheduled = false;
    if (this.#state === 'closed') return;
    const mark = this.#activity + this.#host.recorder.progress;
    if (mark !== this.#seenActivity && this.#activeTurns < maxActiveTurns) {
      this.#seenActivity = mark;
      this.#activeTurns += 1;
      this.#schedule();
      return;
    }
    this.#activeTurns = 0;
    this.work.quiet();
    const { replay } = this.#host.recorder;
    if (replay === undefined && (!this.hold.holds || this.#hasReply)) {
      // What the agent waits for does not settle where the run has been lost. A reply has to be durable first.
      this.#scheduled = true;
      this.#hasReply = false;
      void this.hold.whenHeld().then(() => {
        this.#scheduled = false;
        this.#schedule();
      });
      return;
    }
    try {
      if (replay === undefined) this.#deliverNew();
      else this.#repeat(replay);
    } catch (error) {
      this.#host.fail(error);
    }
  };

  /** Delivers the journal's next entry; after the last one, the run is live. */
  #repeat(replay: Replay): void {
    this.#host.onQuietReplay();
    if (this.#state === 'closed') return;
    if (replay.live) {
      this.#host.recorder.goLive();
      const asks = (this.#replyReceiver?.question ?? 0) > 0;
      this.#host.onLive();
      this.#replyReceiver?.goLive();
      for (const [step, receiver] of [...this.#steps]) this.#begin(step, receiver);
      if ((asks || this.work.asleep) && this.work.onlyQuestions) this.#host.recorder.takeBackAttempt();
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
    if ('usage' in entry) this.#countUsage(entry.step, entry.usage);
    if ('cancelled' in entry) this.#host.onCancelled(entry.reason);
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
    if ('give' in entry) return entry.give.every((one) => !('step' in one) || one.inside || this.#steps.has(one.step));
    if ('cancelled' in entry || 'usage' in entry) return true;
    return (this.#replyReceiver?.question ?? 0) > 0;
  }

  #redeliver(given: readonly Delivery[]): void {
    const deliveries = given.filter((one) => !this.#keepsInside(one));
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

  #keepsInside(delivery: Delivery): boolean {
    if (!('step' in delivery) || !delivery.inside) return false;
    this.#inside.set(delivery.step, [...(this.#inside.get(delivery.step) ?? []), delivery]);
    return true;
  }

  #load(delivery: Delivery, receiver?: StepReceiver): Promise<Delivery> | undefined {
    if (!('value' in delivery)) return undefined;
    const { load } = receiver ?? this.#steps.get(delivery.step) ?? {};
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
      this.#needed += 1;
      this.#queuedChars -= queued.text.length;
      queued.onLeft?.(true);
      // The agent has unsubscribed from that step meanwhile.
      if ('step' in queued.delivery && !this.#steps.has(queued.delivery.step)) continue;
      chars += queued.text.length;
      deliveries.push(queued.delivery);
      if (queued.text !== '') texts.push(queued.text);
      if (queued.extras !== undefined) this.#host.recorder.log.attach(queued.extras);
    }
    if (this.#next >= this.#queue.length) [this.#queue, this.#next] = [[], 0];
    if (texts.length > 0) {
      this.journal(`"give":[${texts.join(',')}]`);
      // Values of a step may be tokens. Its end and a reply are what the next effect follows from.
      if (deliveries.some((one) => !('value' in one))) this.#host.recorder.log.hurry();
      this.#host.recorder.noteProgress();
    }
    for (const delivery of deliveries) this.#deliver(delivery);
    this.#resolveWaiters();
    this.agentActed();
  }

  /** The work of a step has used tokens. A replay, which does not do that work, counts them from the journal. */
  journalUsage(step: string, usage: RunUsage): void {
    if (this.#state !== 'closed') this.journal(`"step":${JSON.stringify(step)},"usage":${JSON.stringify(usage)}`);
  }

  /** Work that was cut off is done again, and reports all that it uses. What it had reported before counts no more. */
  takeBackUsage(step: string): void {
    const used = this.#usedIn.get(step);
    this.#usedIn.delete(step);
    if (used === undefined) return;
    const negative = Object.entries(used).map(([name, count]) => [name, -count]);
    const usage: RunUsage = { tokens: 0, ...Object.fromEntries(negative) };
    this.journalUsage(step, usage);
    this.#host.tokens.add(usage);
  }

  #countUsage(step: string, usage: RunUsage): void {
    this.#usedIn.set(step, addUsage(this.#usedIn.get(step), usage));
    this.#host.tokens.add(usage);
  }

  /** The next event comes from the work of a step: a replay, which does not do that work, leaves it out. */
  journalBeside(): void {
    this.journal('"beside":true');
  }

  /** Appends an entry to the journal; `body` is the JSON of the rest of it, without its braces. */
  journal(body: string): void {
    const { recorder, times } = this.#host;
    recorder.journal(entryLine(recorder.log.row.last, Math.round(times.worked), body));
  }

  #deliver(delivery: Delivery): void {
    if (this.#state === 'closed') return;
    if (!('step' in delivery)) {
      this.#replyReceiver?.deliverReply();
      return;
    }
    const { step } = delivery;
    const receiver = this.#steps.get(step);
    if (receiver?.isInside) {
      this.#deliverInside(receiver, delivery);
      return;
    }
    this.#given = { step, question: this.#replyReceiver?.question ?? 0 };
    try {
      receiver?.deliver(delivery);
    } finally {
      this.#given = undefined;
    }
  }

  /** The work of a step goes on with what another step in it gives when that is durable, as new work would begin. */
  #deliverInside(receiver: StepReceiver, delivery: StepDelivery): void {
    const held = this.hold.whenHeld();
    this.#deliveredInside = this.#deliveredInside
      .then(() => held)
      .then(() => this.#steps.get(delivery.step) === receiver && receiver.deliver(delivery))
      .catch(this.#host.fail);
  }

  #resolveWaiters(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const resolve of waiters) resolve();
  }
}
