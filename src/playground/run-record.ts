import type { Event, Run } from '../client/client.ts';
import { reduce } from '../core/run-state.ts';

export interface LoggedEvent {
  readonly number: number;
  /** Milliseconds since the page created the run, or began to read it. */
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
  }

  /** `time` is on the clock of `performance.now()`. */
  add(event: Event, time: number): void {
    const at = time - this.startedAt;
    this.eventCount += 1;
    this.lastEventAt = at;
    this.run = this.run === undefined ? ('run' in event ? event.run : undefined) : reduce(this.run, event);
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
  }

  /** The highest count per second. */
  get peak(): number {
    return (Math.max(0, ...this.bars) * 1_000) / this.width;
  }

  #merge(): void {
    this.width *= 2;
    this.bars = this.bars.flatMap((count, index) => (index % 2 === 0 ? [count + (this.bars[index + 1] ?? 0)] : []));
  }
}
