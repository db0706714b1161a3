import type { Diagnostic, Event, LogLine, Run } from '../../client/client.ts';
import { reduce } from '../../core/fold.ts';
import { callOf } from '../../core/parts.ts';
import { RunNotes } from '../conversation/run-flow.ts';

export interface LoggedEvent {
  readonly number: number;
  /** Milliseconds since the run began: since the page sent its request, or as `EventClock` has them. */
  readonly at: number;
  readonly event: Event;
}

/** Events in memory; the server has all of them. */
const maxEvents = 5_000;

/** Milliseconds. Tokens that arrive within less arrived together and have no rate. */
const minDuration = 100;

/** What the page has received of a run: its state, its last events and their times. Mutable, one object for each run. */
export class RunRecord {
  readonly run_id: string;
  /** On the clock of `performance.now()`. */
  readonly startedAt: number;
  /** Whether this page created the run. Only then the time to the first token is known. */
  readonly createdHere: boolean;
  readonly tokens = new Histogram();
  readonly notes = new RunNotes();
  readonly #clock: EventClock | undefined;
  run: Run | undefined;
  events: LoggedEvent[] = [];
  eventCount = 0;
  tokenCount = 0;
  firstTokenAt: number | undefined;
  lastTokenAt = 0;
  lastEventAt = 0;

  constructor(run_id: string, createdAt: number | undefined) {
    this.run_id = run_id;
    this.startedAt = createdAt ?? performance.now();
    this.createdHere = createdAt !== undefined;
    this.#clock = createdAt === undefined ? new EventClock() : undefined;
  }

  /** When the run began, in milliseconds since 1970. */
  get startTime(): number {
    const { run, startedAt, createdHere } = this;
    return createdHere || run === undefined ? performance.timeOrigin + startedAt : Date.parse(run.created_at);
  }

  /** Milliseconds since the run began, at a time on the clock of `performance.now()`. */
  elapsed(time: number): number {
    return this.#clock?.elapsed(time) ?? time - this.startedAt;
  }

  /** `time` is on the clock of `performance.now()`. */
  add(event: Event, time: number): void {
    const at = this.#clock?.add(event, time) ?? time - this.startedAt;
    this.eventCount += 1;
    this.lastEventAt = at;
    this.run = this.run === undefined ? ('run' in event ? event.run : undefined) : reduce(this.run, event);
    if (this.run !== undefined) this.notes.add(event, this.run, at);
    this.events.push({ number: this.eventCount, at, event });
    // In bulk, because removing the first element of an array costs as much as its length.
    if (this.events.length >= 2 * maxEvents) this.events = this.events.slice(-maxEvents);
    if (event.type !== 'message.part') return;
    this.tokenCount += 1;
    this.firstTokenAt ??= at;
    this.lastTokenAt = at;
    this.tokens.add(at);
  }

  /** Tokens per second, from the first to the last; undefined if they arrived too close together. */
  get rate(): number | undefined {
    const time = this.lastTokenAt - (this.firstTokenAt ?? this.lastTokenAt);
    return time >= minDuration ? ((this.tokenCount - 1) * 1_000) / time : undefined;
  }
}

/** Counts per interval of time. Above `maxBars`, each two intervals are merged, so the size is bounded. */
export class Histogram {
  readonly #maxBars: number;
  /** The second of the last count, from 0, and the counts in it. */
  #second = 0;
  #inSecond = 0;
  /** The highest count in one second of the clock: it does not depend on the width of the bars. */
  peak = 0;
  /** Milliseconds of one bar. */
  width: number;
  bars: number[] = [];

  constructor(width = 50, maxBars = 60) {
    this.width = width;
    this.#maxBars = maxBars;
  }

  /** `at` is in milliseconds from the beginning, and may not decrease. */
  add(at: number): void {
    while (at >= this.width * this.#maxBars) this.#merge();
    const bar = Math.floor(at / this.width);
    while (this.bars.length <= bar) this.bars.push(0);
    this.bars[bar] = (this.bars[bar] ?? 0) + 1;
    const second = Math.floor(at / 1_000);
    this.#inSecond = second === this.#second ? this.#inSecond + 1 : 1;
    this.#second = second;
    this.peak = Math.max(this.peak, this.#inSecond);
  }

  #merge(): void {
    this.width *= 2;
    this.bars = this.bars.flatMap((count, index) => (index % 2 === 0 ? [count + (this.bars[index + 1] ?? 0)] : []));
  }
}

/**
 * Times of the events of a run that the page reads from the server's log. Changes of status, messages and calls have the
 * server's times. Any other event gets the time of the last event that has one, plus the time between the arrivals of the two.
 * That is exact for events that arrive live, and the earliest possible time for those of the past.
 */
export class EventClock {
  /** The time of the run's creation, in milliseconds since 1970. */
  #start: number | undefined;
  /** The last event with a time of the server: milliseconds since the start, and its arrival. */
  #at = 0;
  #arrival: number | undefined;
  #last = 0;

  /** The time of the next event, in milliseconds since the run's creation; it never decreases. */
  add(event: Event, arrival: number): number {
    const stamp = stampOf(event);
    if (stamp !== undefined) {
      this.#start ??= stamp;
      this.#at = stamp - this.#start;
      this.#arrival = arrival;
    }
    this.#last = Math.max(this.#last, this.elapsed(arrival));
    return this.#last;
  }

  /** Milliseconds since the run's creation, at a time on the clock of the arrivals. */
  elapsed(time: number): number {
    return Math.max(this.#last, this.#at + time - (this.#arrival ?? time));
  }
}

/** When the server recorded the event, in milliseconds since 1970. */
function stampOf(event: Event): number | undefined {
  const time = timeIn(event);
  return typeof time === 'string' ? Date.parse(time) : undefined;
}

function timeIn(event: Event): string | null | undefined {
  if (event.type === 'message.created') return event.message.created_at;
  if (event.type === 'message.completed') return event.message.completed_at;
  if (event.type === 'generic') return callOf(event.generic)?.at;
  if (!('run' in event)) return undefined;
  const { status, created_at, finished_at, await_request, await_resume } = event.run;
  if (status === 'created') return created_at;
  if (status === 'awaiting') return await_request?.message.created_at;
  return status === 'in-progress' ? await_resume?.received_at : finished_at;
}

export type LogEntry = LoggedEvent | LogLine;

export const isLogLine = (entry: LogEntry | Diagnostic): entry is LogLine => 'kind' in entry && entry.kind === 'log';

/** Events with the lines of the agents' logs in their places: a line comes after the event that was the last one when it was written. */
export function withLogLines(events: readonly LoggedEvent[], lines: readonly LogLine[]): LogEntry[] {
  const first = events[0]?.number ?? 1;
  // The page keeps the newest events only. Lines before them have no place.
  const placed = first === 1 ? lines : lines.filter(({ at }) => at >= first);
  const placeOf = (entry: LogEntry): number => (isLogLine(entry) ? entry.at : entry.number);
  return [...events, ...placed].toSorted((a, b) => placeOf(a) - placeOf(b));
}
