import type { Event, Run } from '../client/client.ts';
import { reduce } from '../core/run-state.ts';
import { Histogram } from './histogram.ts';

export interface Entry {
  /** The event's number in its run. */
  readonly id: number;
  /** Milliseconds since the run was asked for, or since this page began to read. */
  readonly at: number;
  readonly event: Event;
}

/** Events that are kept to be looked at; the server has all of them. */
const kept = 5_000;

/** Milliseconds that a rate can be told from: what comes within less came in one piece. */
const shortest = 100;

/** A run as this page has seen it: its state, its last events, and how fast they came. One object for all of a run. */
export class RunRecord {
  readonly run_id: string;
  /** On the clock of `performance.now()`. */
  readonly begun: number;
  /** Whether the page asked for the run itself; the time to the first token is known only then. */
  readonly asked: boolean;
  readonly tokens = new Histogram();
  run: Run | undefined;
  entries: Entry[] = [];
  total = 0;
  tokenCount = 0;
  firstToken: number | undefined;
  lastToken = 0;
  last = 0;

  constructor(run_id: string, asked: number | undefined) {
    this.run_id = run_id;
    this.begun = asked ?? performance.now();
    this.asked = asked !== undefined;
  }

  /** `time` is on the clock of `performance.now()`. */
  add(event: Event, time: number): void {
    const at = time - this.begun;
    this.total += 1;
    this.last = at;
    this.run = this.run === undefined ? ('run' in event ? event.run : undefined) : reduce(this.run, event);
    this.entries.push({ id: this.total, at, event });
    // Not one by one: taking the first of many away costs as much as there are.
    if (this.entries.length >= 2 * kept) this.entries = this.entries.slice(-kept);
    if (event.type !== 'message.part') return;
    this.tokenCount += 1;
    this.firstToken ??= at;
    this.lastToken = at;
    this.tokens.add(at);
  }

  /** Tokens a second, from the first to the last; undefined where they came too close together to say. */
  get rate(): number | undefined {
    const time = this.lastToken - (this.firstToken ?? this.lastToken);
    return time >= shortest ? ((this.tokenCount - 1) * 1_000) / time : undefined;
  }
}
