import { encode } from '../../core/encode.ts';
import { fail, type RivuletError } from '../../core/errors.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Event } from '../../schema/event.ts';
import type { AwaitRequest, AwaitResume } from '../../schema/run.ts';

/** What a durable run's agent is given: something of a step's, or the reply that the run took. */
export type Delivery =
  | { readonly step: string; readonly value: readonly [] | readonly [unknown] } // `undefined` is a value as well
  | { readonly step: string; readonly done: true }
  | { readonly step: string; readonly error: ErrorBody }
  | { readonly answered: true };

/**
 * A line of a durable run's journal. `at` is the id of the last event before it, `ms` how long the run had been at work.
 * What is in one `give` was given in one go; between two lines the agent did all that it could do without the second.
 */
export type JournalEntry = { readonly at: number; readonly ms?: number } & (
  | { readonly give: readonly Delivery[] }
  | { readonly reply: AwaitResume }
  | { readonly begun: string }
  | { readonly left: string }
);

/** An earlier life of the run: its events after the first one, and its journal. */
export interface Recording {
  readonly lines: readonly string[];
  readonly journal: readonly JournalEntry[];
}

/**
 * A past that a run is led through: what its agent emits is matched with the log, and what it asks for comes from the
 * journal. When both are used up, the run is live.
 */
export class Replay {
  readonly #lines: readonly string[];
  readonly #entries: readonly JournalEntry[];
  /** Id of the event before the first line. */
  readonly #base: number;
  #matched = 0;
  #delivered = 0;

  constructor(base: number, { lines, journal }: Recording) {
    this.#base = base;
    this.#lines = lines;
    this.#entries = journal.filter((entry) => 'give' in entry || 'reply' in entry);
  }

  get live(): boolean {
    return !this.matching && this.#delivered === this.#entries.length;
  }

  /** Whether there are events left to match. */
  get matching(): boolean {
    return this.#matched < this.#lines.length;
  }

  /** Whether these could be the next events; those after the end of the log are new. */
  fits(events: readonly Event[]): boolean {
    return events.every((event, index) => {
      const line = this.#lines[this.#matched + index];
      return line === undefined || matchLine(event, line) !== undefined;
    });
  }

  /**
   * The event of the log that this one repeats; times are the log's.
   * @throws RivuletError `replay_diverged`
   */
  match(event: Event): Event {
    const line = this.#lines[this.#matched];
    const logged = line === undefined ? undefined : matchLine(event, line);
    if (logged === undefined) throw this.diverged([event]);
    this.#matched += 1;
    return logged;
  }

  /** The events that were not repeated: where a replay ends early, the Run has them all the same. */
  rest(): Event[] {
    const rest = this.#lines.slice(this.#matched).map((line): Event => JSON.parse(line));
    this.#matched = this.#lines.length;
    return rest;
  }

  /** The journal's next entry, where all events before it were matched. */
  dueEntry(): JournalEntry | undefined {
    const entry = this.#entries[this.#delivered];
    return entry !== undefined && entry.at <= this.#base + this.#matched ? entry : undefined;
  }

  /** What is due was given. */
  markDelivered(): void {
    this.#delivered += 1;
  }

  /** The error that says where the replay stands. `got` is what the agent emitted, or did, instead of what comes next. */
  diverged(got: readonly Event[] | string): RivuletError {
    const entry = this.dueEntry();
    if (typeof got === 'string' && entry !== undefined)
      return fail('replay_diverged', 'the journal', describeEntry(entry), got);
    const events = typeof got === 'string' ? [] : got;
    const same = events.findIndex((_, index) => !this.fits(events.slice(0, index + 1)));
    const at = this.#matched + Math.max(0, same);
    const event = events[Math.max(0, same)];
    const shown = typeof got === 'string' ? got : event === undefined ? 'nothing' : encode(event);
    return fail('replay_diverged', this.#base + at + 1, this.#lines[at] ?? 'nothing', shown);
  }
}

/** The steps that had begun, and were not at their end, when a run left its process. */
export function openSteps(journal: readonly JournalEntry[]): Set<string> {
  const open = new Set<string>();
  for (const entry of journal) {
    if ('begun' in entry) open.add(entry.begun);
    if ('left' in entry) open.delete(entry.left);
    if ('give' in entry) for (const gift of entry.give) if ('done' in gift || 'error' in gift) open.delete(gift.step);
  }
  return open;
}

function describeEntry(entry: JournalEntry): string {
  if ('reply' in entry) return 'a question that the run awaits the reply to';
  const [gift] = 'give' in entry ? entry.give : [];
  return gift !== undefined && 'step' in gift ? `step ${gift.step} to begin` : 'a question that is open';
}

/** The logged event, where the other one is the same but for its times; undefined where it is not. */
function matchLine(event: Event, line: string): Event | undefined {
  // Parts are most of a log, and no time is in them.
  if (encode(event) === line) return event;
  if (event.type === 'message.part') return undefined;
  const logged: Event = JSON.parse(line);
  return encode(comparable(event, logged)) === encode(comparable(logged, logged)) ? logged : undefined;
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
