import { isFinal, type Run } from '../../../src/index.ts';
import { markOf, type Replies } from './expected-output.ts';
import { Durations, type Faults } from './measurements.ts';
import type { Order } from './orders.ts';

/** What a test does to a node. */
export type Act = 'kill' | 'pause' | 'stop';

/** A run that a server has acknowledged. */
export interface Known {
  readonly run_id: string;
  readonly session_id: string;
  readonly order: Order;
  /** The first received text of each event; the first is event 1. */
  readonly lines: string[];
  /** When each event was first received. */
  readonly times: number[];
  readonly readers: Reading[];
  /** The replies to each question. */
  readonly replies: Replies[];
  /** The Runs in responses of mode sync. */
  readonly responses: string[];
  /** Faults that do not count if the run was interrupted, because then the outcome of requests is unknown. */
  readonly doubts: [kind: string, example: string][];
  cancel: 'none' | 'sent' | 'accepted';
  /** The process that wrote the last token with a mark. */
  mark: string | undefined;
  /** What was done to that process, until another process writes a token. */
  struck: { readonly act: Act; readonly at: number } | undefined;
}

/** The position of one reader in a run. */
export interface Reading {
  /** The number of the last event. */
  last: number;
  /** The node of the current stream, and when the stream was opened. */
  node: string;
  opened: number;
}

/** What servers have told the clients. No server may contradict it later. */
export class Ledger {
  readonly faults: Faults;
  readonly runs = new Map<string, Known>();
  readonly #byKey = new Map<string, Known>();
  /** From an act to the next token of the affected runs by another process. */
  readonly failover: Readonly<Record<Act, Durations>> = {
    kill: new Durations(),
    pause: new Durations(),
    stop: new Durations(),
  };
  /** From a kill to the end of the runs that are not durable. */
  readonly interruption = new Durations();
  /** Between the first and the second reader of an event, if nothing was done to their nodes. */
  readonly lag = new Durations();
  /** Whether the node is up, and nothing was done to it since a time. */
  calm: (node: string, since: number) => boolean = () => true;
  /** Whether the store was away at some moment since a time. */
  storeAway: (since: number) => boolean = () => false;
  eventsReceived = 0;
  /** Streams that ended with an error because the store was away. */
  failedStreams = 0;
  /** Creations without an idempotency key that were cut before the response. */
  unanswered = 0;
  reconnects = 0;
  switches = 0;
  resumes = 0;
  resumesElsewhere = 0;
  cancels = 0;
  cancelsElsewhere = 0;
  audits = 0;
  /** When the last event of any run was received. */
  lastEventAt = performance.now();

  constructor(faults: Faults) {
    this.faults = faults;
  }

  /** Records that a server has acknowledged a run. */
  acknowledge(order: Order, run_id: string, session_id: string): Known {
    const before = this.#byKey.get(order.key);
    if (before !== undefined) {
      if (before.run_id !== run_id)
        this.faults.add('one Idempotency-Key created two runs', `${order.key}: ${before.run_id} and ${run_id}`);
      return before;
    }
    const known: Known = {
      run_id,
      session_id,
      order,
      lines: [],
      times: [],
      readers: [],
      replies: [],
      responses: [],
      doubts: [],
      cancel: 'none',
      mark: undefined,
      struck: undefined,
    };
    this.runs.set(run_id, known);
    this.#byKey.set(order.key, known);
    return known;
  }

  /** Records that a reader has received an event. */
  receive(known: Known, reading: Reading, id: number, line: string): void {
    const now = performance.now();
    const { run_id, lines, times } = known;
    const place = `run ${run_id} (${known.order.kind}) from ${reading.node}`;
    this.eventsReceived += 1;
    this.lastEventAt = now;
    if (id !== reading.last + 1) {
      this.faults.add('a reader received events out of order', `${place}: ${id} after ${reading.last}: ${line}`);
    }
    const before = lines[id - 1];
    if (before === undefined) {
      lines[id - 1] = line;
      times[id - 1] = now;
      this.#first(known, line, now);
    } else if (before !== line) {
      this.faults.add('an event has two texts', `${place}: event ${id} was ${before} and is ${line}`);
    } else {
      const first = times[id - 1] ?? now;
      if (reading.opened < first && this.calm(reading.node, first)) this.lag.add(now - first);
    }
    reading.last = id;
  }

  /** Records an act on the process with a mark. */
  strike(act: Act, mark: string): void {
    const at = performance.now();
    for (const known of this.runs.values()) {
      if (known.mark === mark && !isOver(known)) known.struck = { act, at };
    }
  }

  #first(known: Known, line: string, now: number): void {
    const status = runOf(line)?.status;
    const { struck } = known;
    if (status !== undefined && isFinal(status)) {
      if (struck?.act === 'kill' && line.includes('run_interrupted')) this.interruption.add(now - struck.at);
      known.struck = undefined;
      return;
    }
    const mark = line.startsWith('{"type":"message.part"') ? markOf(line) : undefined;
    if (mark === undefined || mark === known.mark) return;
    known.mark = mark;
    if (struck !== undefined) this.failover[struck.act].add(now - struck.at);
    known.struck = undefined;
  }
}

/** The Run that an event carries, if it carries one. */
const runOf = (line: string): Run | undefined => (line.startsWith('{"type":"run.') ? JSON.parse(line).run : undefined);

export const statusOf = (line: string): Run['status'] => runOf(line)?.status ?? 'in-progress';
export const isOver = ({ lines }: Pick<Known, 'lines'>): boolean => isFinal(statusOf(lines.at(-1) ?? ''));
export const questionIn = (line: string): string => runOf(line)?.await_request?.message.parts[0]?.content ?? '';
