import type { AwaitResume } from '../../schema/run.ts';
import type { Recorder } from './recorder.ts';
import { type Gift, type JournalEntry, openSteps, type Replay } from './replay.ts';

export type StepGift = Extract<Gift, { step: string }>;

/** A step that the agent is subscribed to. */
interface Receiver {
  give(gift: StepGift): void;
  /** Reads what the journal only names, before it is given. */
  readonly load?: ((value: unknown) => Promise<unknown>) | undefined;
  /** Does the work; called when the run is live. */
  begin(): void;
}

/** What takes replies, and gives them to the agent. */
interface Replies {
  /** Whether a question is open. */
  readonly asked: boolean;
  /** Takes a reply of the journal. */
  takeAgain(reply: AwaitResume): void;
  /** Gives the agent the reply that was taken first. */
  give(): void;
  /** The run is live: what was taken, and not given, is put into the feed. */
  goLive(): void;
}

/** Something for the agent, and how the journal has it. */
interface Put {
  readonly gift: Gift;
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
  readonly retry: () => void;
}

/** Characters of the journal that are given in one go. */
const mostAtOnce = 64 * 1024;
/** Turns of the event loop that an agent may go on for, before it is given something all the same. */
const mostTurns = 4;

/**
 * Whatever a durable run's agent is given from outside, in the first life as in a later one: the values of steps, and
 * replies. All that has come is given in one go, and the next only when the agent is quiet, which means that its
 * microtasks and immediates are done. So what the agent does follows from the order of the journal alone; it does not
 * depend on how many microtasks one branch of it needs and how many another. One turn of the event loop is the cost.
 */
export class Feed {
  readonly #host: FeedHost;
  readonly #steps = new Map<string, Receiver>();
  /** Steps whose work has begun, and is not at its end. */
  readonly #open: Set<string>;
  #replies: Replies | undefined;
  #queue: Put[] = [];
  #chars = 0;
  #next = 0;
  #scheduled = false;
  #closed = false;
  /** What shows that the agent did something since the last turn; and for how many turns it went on. */
  #moves = 0;
  #mark = -1;
  #turns = 0;
  #waiting: (() => void)[] = [];
  #loading = false;

  /** `journal` is that of an earlier life. */
  constructor(host: FeedHost, journal: readonly JournalEntry[] = []) {
    this.#host = host;
    this.#open = openSteps(journal);
  }

  serve(replies: Replies): void {
    this.#replies = replies;
  }

  /** Characters that wait for the agent. */
  get backlog(): number {
    return this.#chars;
  }

  /** Whether the agent is subscribed to a step. */
  get busy(): boolean {
    return this.#steps.size > 0;
  }

  /** Resolves when something was given; undefined where nothing waits that the agent could take now. */
  get held(): Promise<void> | undefined {
    const entry = this.#host.recorder.replay?.due();
    if (entry === undefined || !this.#possible(entry)) return undefined;
    return this.given();
  }

  /** Resolves when something was given, or the run is over. */
  given(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** A step was subscribed to; its work begins when the run is live. Returns how to leave. */
  join(step: string, receiver: Receiver): () => void {
    this.#steps.set(step, receiver);
    this.#moves += 1;
    if (this.#host.recorder.replay === undefined) receiver.begin();
    else this.stir();
    return () => {
      if (this.#steps.get(step) === receiver) this.#steps.delete(step);
    };
  }

  /** Has something given to the agent, when its turn comes. */
  put(gift: Gift, text: string): void {
    if (this.#closed) return;
    this.#queue.push({ gift, text });
    this.#chars += text.length;
    this.#schedule();
  }

  /** The agent did something, so that more may be due. */
  stir(): void {
    this.#moves += 1;
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.#queue = [];
    this.#steps.clear();
    this.#release();
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
    const mark = this.#moves + this.#host.recorder.heard;
    if (mark !== this.#mark && this.#turns < mostTurns) {
      this.#mark = mark;
      this.#turns += 1;
      this.#schedule();
      return;
    }
    this.#turns = 0;
    try {
      const { replay } = this.#host.recorder;
      if (replay === undefined) this.#giveNew();
      else this.#repeat(replay);
    } catch (error) {
      this.#host.fail(error);
    }
  };

  /** Gives the journal's next line; when there is none left, the run is live. */
  #repeat(replay: Replay): void {
    this.#host.retry();
    if (this.#closed) return;
    if (replay.live) {
      this.#host.recorder.goLive();
      this.#replies?.goLive();
      for (const step of [...this.#steps.values()]) step.begin();
      this.#release();
      this.stir();
      return;
    }
    const entry = replay.due();
    if (entry === undefined || !this.#possible(entry)) return;
    replay.gave();
    this.#host.recorder.heard += 1;
    if ('reply' in entry) this.#replies?.takeAgain(entry.reply);
    if ('give' in entry) this.#giveAgain(entry.give);
    this.#release();
    this.stir();
  }

  #possible(entry: JournalEntry): boolean {
    if ('give' in entry) return entry.give.every((gift) => !('step' in gift) || this.#steps.has(gift.step));
    return this.#replies?.asked === true;
  }

  #giveAgain(gifts: readonly Gift[]): void {
    const loading = gifts.map((gift) => this.#loaded(gift));
    if (loading.every((one) => one === undefined)) {
      for (const gift of gifts) this.#give(gift);
      return;
    }
    this.#loading = true;
    Promise.all(loading.map((one, index) => one ?? gifts[index])).then(
      (loaded) => {
        this.#loading = false;
        for (const gift of loaded) if (gift !== undefined) this.#give(gift);
        this.stir();
      },
      (error) => this.#host.fail(error),
    );
  }

  #loaded(gift: Gift): Promise<Gift> | undefined {
    if (!('value' in gift)) return undefined;
    const load = this.#steps.get(gift.step)?.load;
    return load?.(gift.value[0]).then((value) => ({ step: gift.step, value: [value] }));
  }

  #giveNew(): void {
    const gifts: Gift[] = [];
    const texts: string[] = [];
    let chars = 0;
    while (this.#next < this.#queue.length && chars < mostAtOnce) {
      const put = this.#queue[this.#next];
      this.#next += 1;
      if (put === undefined) break;
      this.#chars -= put.text.length;
      // The agent has left that step since.
      if ('step' in put.gift && !this.#steps.has(put.gift.step)) continue;
      chars += put.text.length;
      gifts.push(put.gift);
      texts.push(put.text);
    }
    if (this.#next >= this.#queue.length) [this.#queue, this.#next] = [[], 0];
    if (gifts.length > 0) {
      this.#journal(`"give":[${texts.join(',')}]`);
      this.#host.recorder.gotOn();
    }
    for (const gift of gifts) this.#give(gift);
    this.#release();
    this.stir();
  }

  /** Writes a line of the journal; `rest` is what comes after its place and time. */
  #journal(rest: string): void {
    const { recorder, worked } = this.#host;
    recorder.journal(`{"at":${recorder.log.row.last},"ms":${Math.round(worked())},${rest}}`);
  }

  /** A step's work begins: should the process die, the journal shows that it was under way. */
  begun(step: string): void {
    if (this.#closed || this.#open.has(step)) return;
    this.#open.add(step);
    this.#journal(`"begun":${JSON.stringify(step)}`);
  }

  /** The agent has left a step before its end. */
  left(step: string): void {
    if (!this.#closed && this.#open.delete(step)) this.#journal(`"left":${JSON.stringify(step)}`);
  }

  #give(gift: Gift): void {
    if (this.#closed) return;
    if ('done' in gift || 'error' in gift) this.#open.delete(gift.step);
    if ('step' in gift) this.#steps.get(gift.step)?.give(gift);
    else this.#replies?.give();
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
