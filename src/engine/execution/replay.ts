import { encode } from '../../core/encode.ts';
import { fail } from '../../core/errors.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Event } from '../../schema/event.ts';
import type { AwaitRequest, AwaitResume } from '../../schema/run.ts';

/**
 * What a durable run's agent was given from outside, in the order in which it got it. `at` is the id of the
 * last event before: with it, a replay gives the agent the same things at the same places.
 */
export type JournalEntry = { readonly at: number } & ( // `undefined` is a value as well, which JSON leaves out.
  | { readonly step: string; readonly value?: unknown }
  | { readonly step: string; readonly done: true }
  | { readonly step: string; readonly error: ErrorBody }
  | { readonly reply: AwaitResume }
  // The agent gets a reply when it is durable; what else it was given until then comes first in a replay, too.
  | { readonly answered: true }
);
export type StepEntry = Extract<JournalEntry, { step: string }>;

type Give = (entry: StepEntry) => void;

/**
 * A run that is re-entered: what its agent emits is matched with the log and swallowed, and what it asks for
 * comes from the journal. When both are used up the run is live, and goes on where it was.
 */
export class Replay {
  readonly #lines: readonly string[];
  readonly #entries: readonly JournalEntry[];
  readonly #take: (reply: AwaitResume) => void;
  readonly #answer: () => void;
  readonly #steps = new Map<string, Give>();
  readonly #waiting: (() => void)[] = [];
  readonly #base: number;
  #matched = 0;
  #given = 0;
  #giving = false;

  /** `lines` are the events after event `base`; each reply is taken when its place comes, and answered at another. */
  constructor(
    base: number,
    lines: readonly string[],
    entries: readonly JournalEntry[],
    { take, answer }: { take: (reply: AwaitResume) => void; answer: () => void },
  ) {
    this.#base = base;
    this.#lines = lines;
    this.#entries = entries;
    this.#take = take;
    this.#answer = answer;
  }

  get live(): boolean {
    return this.#matched === this.#lines.length && this.#given === this.#entries.length;
  }

  /** Whether there are events left to match. */
  get matching(): boolean {
    return this.#matched < this.#lines.length;
  }

  /**
   * The event of the log that this one repeats; times are the log's.
   * @throws RivuletError `replay_diverged`
   */
  match(event: Event): Event {
    const line = this.#lines[this.#matched] ?? '';
    const position = this.#base + this.#matched + 1;
    const same = encode(event) === line;
    // Parts are most of a log, and no time is in them: what differs, differs.
    const logged: Event = same ? event : JSON.parse(line);
    if (!same && encode(comparable(event, logged)) !== encode(comparable(logged, logged))) {
      throw fail('replay_diverged', position, line, encode(event));
    }
    this.#matched += 1;
    return logged;
  }

  /** The events that were not repeated: where a replay ends early, the Run has them all the same. */
  rest(): Event[] {
    const rest = this.#lines.slice(this.#matched).map((line): Event => JSON.parse(line));
    this.#matched = this.#lines.length;
    return rest;
  }

  /** Gives what is due at this place; called when the agent has had its say. */
  proceed(): void {
    // Giving makes the agent speak, after which this is called again.
    if (this.#giving) return;
    this.#giving = true;
    for (let entry = this.#due(); entry !== undefined; entry = this.#due()) {
      if ('reply' in entry || 'answered' in entry) {
        this.#given += 1;
        if ('reply' in entry) this.#take(entry.reply);
        else this.#answer();
        continue;
      }
      const give = this.#steps.get(entry.step);
      if (give === undefined) break;
      this.#given += 1;
      give(entry);
    }
    this.#giving = false;
    if (this.live) for (const begin of this.#waiting.splice(0)) begin();
  }

  /** A step was subscribed to: gives it its part of the journal, then calls back when the run is live. */
  join(step: string, give: Give, live: () => void): void {
    this.#steps.set(step, give);
    this.whenLive(live);
    this.proceed();
  }

  /** Calls back once, when the run is live. */
  whenLive(callback: () => void): void {
    this.#waiting.push(callback);
  }

  #due(): JournalEntry | undefined {
    const entry = this.#entries[this.#given];
    return entry !== undefined && entry.at <= this.#base + this.#matched ? entry : undefined;
  }
}

/** An event without what may differ from life to life: times, and what of a Run follows from the events before. */
function comparable(event: Event, logged: Event): Event {
  if ('message' in event && 'message' in logged) {
    const { created_at, completed_at } = logged.message;
    return { ...event, message: { ...event.message, created_at, completed_at } };
  }
  if (!('run' in event)) return event;
  const { run_id, agent_name, status, await_request, created_at } = event.run;
  const asked = await_request && { await_request: timeless(await_request) };
  return { type: event.type, run: { run_id, agent_name, status, ...asked, output: [], created_at } };
}

const timeless = ({ message, expires_at: _, ...rest }: AwaitRequest): AwaitRequest => ({
  ...rest,
  message: { role: message.role, parts: message.parts },
});
