import { encode } from '../../core/encode.ts';
import { fail, type RivuletError } from '../../core/errors.ts';
import type { Event } from '../../schema/event.ts';
import type { AwaitRequest } from '../../schema/run.ts';
import type { JournalEntry } from '../log/journal.ts';

/** What earlier executions of a run have recorded: its events after the first one, and its journal. */
export interface Recording {
  readonly lines: readonly string[];
  readonly journal: readonly JournalEntry[];
}

interface LoggedLine {
  readonly id: number;
  readonly line: string;
}

/**
 * The replay of a recording: the agent's output is matched with the log, and the values of steps and the replies come
 * from the journal. When both are used up, the run is live.
 */
export class Replay {
  /** Those that the agent emits again, with their ids. */
  readonly #lines: readonly LoggedLine[];
  readonly #entries: JournalEntry[];
  /** The id of the last event. */
  readonly #last: number;
  #matched = 0;
  #delivered = 0;

  /** `base` is the id of the event before the first line. */
  constructor(base: number, { lines, journal }: Recording) {
    const beside = new Set(journal.flatMap((entry) => ('beside' in entry ? [entry.at + 1] : [])));
    this.#lines = lines.map((line, index) => ({ id: base + 1 + index, line })).filter(({ id }) => !beside.has(id));
    this.#entries = journal.filter((entry) => !('beside' in entry));
    this.#last = base + lines.length;
  }

  /** The id of the last event before the next line. */
  get #position(): number {
    return (this.#lines[this.#matched]?.id ?? this.#last + 1) - 1;
  }

  get live(): boolean {
    return !this.matching && this.#delivered === this.#entries.length;
  }

  /** Whether there are events left to match. */
  get matching(): boolean {
    return this.#matched < this.#lines.length;
  }

  /** Whether these are the next events of the log; events after its end are new. */
  fits(events: readonly Event[]): boolean {
    return events.every((event, index) => {
      const line = this.#lines[this.#matched + index]?.line;
      return line === undefined || matchLine(event, line) !== undefined;
    });
  }

  /**
   * Matches an event with the next one of the log, and returns that one, which has the original times.
   * @throws RivuletError `replay_diverged`
   */
  match(event: Event): Event {
    const line = this.#lines[this.#matched]?.line;
    const logged = line === undefined ? undefined : matchLine(event, line);
    if (logged === undefined) throw this.diverged([event]);
    this.#matched += 1;
    return logged;
  }

  /** Takes the events that are not matched yet, for a replay that ends early. */
  rest(): Event[] {
    const rest = this.#lines.slice(this.#matched).map(({ line }): Event => JSON.parse(line));
    this.#matched = this.#lines.length;
    return rest;
  }

  /** The journal's next entry, if all events before it are matched. */
  dueEntry(): JournalEntry | undefined {
    const entry = this.#entries[this.#delivered];
    return entry !== undefined && entry.at <= this.#position ? entry : undefined;
  }

  /** The run was cancelled meanwhile: the last entry tells the agent. */
  cancelAtEnd(reason?: string): void {
    this.#entries.push({ at: this.#last, cancelled: true, ...(reason !== undefined && { reason }) });
  }

  /** The entry that was due is delivered. */
  markDelivered(): void {
    this.#delivered += 1;
  }

  /**
   * The error that names the position of the replay. `got` is what the agent emitted, or did, instead of the expected
   * entry.
   */
  diverged(got: readonly Event[] | string): RivuletError {
    const entry = this.dueEntry();
    if (typeof got === 'string' && entry !== undefined)
      return fail('replay_diverged', 'the journal', describeEntry(entry), got);
    const events = typeof got === 'string' ? [] : got;
    const same = events.findIndex((_, index) => !this.fits(events.slice(0, index + 1)));
    const { id = this.#last + 1, line = 'nothing' } = this.#lines[this.#matched + Math.max(0, same)] ?? {};
    const event = events[Math.max(0, same)];
    const shown = typeof got === 'string' ? got : event === undefined ? 'nothing' : encode(event);
    return fail('replay_diverged', id, line, shown);
  }
}

function describeEntry(entry: JournalEntry): string {
  if ('reply' in entry) return 'a question that the run awaits the reply to';
  const [delivery] = 'give' in entry ? entry.give : [];
  return delivery !== undefined && 'step' in delivery ? `step ${delivery.step} to begin` : 'a question that is open';
}

/** The logged event, if the other one differs in its times only; otherwise undefined. */
function matchLine(event: Event, line: string): Event | undefined {
  // Most events are parts, which have no times.
  if (encode(event) === line) return event;
  if (event.type === 'message.part') return undefined;
  const logged: Event = JSON.parse(line);
  return encode(comparable(event, logged)) === encode(comparable(logged, logged)) ? logged : undefined;
}

/** An event without the fields that may differ in a replay: times, and the output that follows from earlier events. */
function comparable(event: Event, logged: Event): Event {
  if ('message' in event && 'message' in logged) {
    const { created_at, completed_at } = logged.message;
    return { ...event, message: { ...event.message, created_at, completed_at } };
  }
  if ('generic' in event && 'generic' in logged && event.generic.kind === 'call')
    return { ...event, generic: { ...event.generic, at: logged.generic.at } };
  if (!('run' in event)) return event;
  const { run_id, agent_name, status, await_request, created_at } = event.run;
  const asked = await_request && { await_request: timeless(await_request) };
  return { type: event.type, run: { run_id, agent_name, status, ...asked, output: [], created_at } };
}

const timeless = ({ message, expires_at: _, ...rest }: AwaitRequest): AwaitRequest => ({
  ...rest,
  message: { role: message.role, parts: message.parts },
});
