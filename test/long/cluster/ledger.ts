import { isFinal, type Run } from '../../../src/index.ts';
import type { Order } from './agents.ts';
import type { Faults } from './faults.ts';
import { markOf, type Reply } from './speech.ts';
import { Times } from './times.ts';

/** What is done to a node. */
export type Act = 'kill' | 'pause' | 'stop';

/** A run that some node has acknowledged. */
export interface Known {
  readonly run_id: string;
  readonly session_id: string;
  readonly order: Order;
  /** The lines of its events, as who saw each first saw it; the first is event 1. */
  readonly lines: string[];
  /** When each of them was seen first. */
  readonly times: number[];
  /** Which event each of its readers saw last. */
  readonly readers: Reading[];
  readonly replies: Reply[];
  /** The Runs that were answered as JSON when it had settled. */
  readonly answers: string[];
  /** What is wrong unless its process died at that moment: what it was refused, and what was said. */
  readonly doubts: [kind: string, example: string][];
  /** A cancel was sent, and maybe answered. */
  cancel: 'none' | 'sent' | 'taken';
  /** Who wrote the last token that says so. */
  mark: string | undefined;
  /** What was done to that one, and nobody else has written since. */
  struck: { readonly act: Act; readonly at: number } | undefined;
}

export interface Reading {
  last: number;
  /** Which node the stream comes from, and since when. */
  node: string;
  opened: number;
}

/** What clients know: what some node has told them, no node may ever take back. */
export class Ledger {
  readonly faults: Faults;
  readonly runs = new Map<string, Known>();
  readonly #byKey = new Map<string, Known>();
  /** From what was done to a node to the next token by another one, of the runs that it was writing. */
  readonly failover: Readonly<Record<Act, Times>> = { kill: new Times(), pause: new Times(), stop: new Times() };
  /** From a node's death to the end of the pinned runs that died with it. */
  readonly interruption = new Times();
  /** From when one reader sees an event to when another does, both on nodes that nothing was done to. */
  readonly lag = new Times();
  /** Whether nothing was done to a node since a time. */
  calm: (node: string, since: number) => boolean = () => true;
  /** Whether the store was away at some moment since a time. */
  storeAway: (since: number) => boolean = () => false;
  eventsSeen = 0;
  /** Streams that ended with an error because the store was away. */
  failedStreams = 0;
  reconnects = 0;
  switches = 0;
  resumes = 0;
  resumesElsewhere = 0;
  cancels = 0;
  cancelsElsewhere = 0;
  /** When something was heard last of any run. */
  heard = performance.now();

  constructor(faults: Faults) {
    this.faults = faults;
  }

  /** Some node has acknowledged a run. */
  acknowledge(order: Order, run_id: string, session_id: string): Known {
    const before = this.#byKey.get(order.key);
    if (before !== undefined) {
      if (before.run_id !== run_id)
        this.faults.add('one Idempotency-Key made two runs', `${order.key}: ${before.run_id} and ${run_id}`);
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
      answers: [],
      doubts: [],
      cancel: 'none',
      mark: undefined,
      struck: undefined,
    };
    this.runs.set(run_id, known);
    this.#byKey.set(order.key, known);
    return known;
  }

  /** A reader was shown an event. */
  see(known: Known, reading: Reading, id: number, line: string): void {
    const now = performance.now();
    const { run_id, lines, times } = known;
    const place = `run ${run_id} (${known.order.kind}) from ${reading.node}`;
    this.eventsSeen += 1;
    this.heard = now;
    if (id !== reading.last + 1) {
      this.faults.add('a reader was shown events out of order', `${place}: ${id} after ${reading.last}: ${line}`);
    }
    const before = lines[id - 1];
    if (before === undefined && id === lines.length + 1) {
      lines.push(line);
      times.push(now);
      this.#first(known, line, now);
    } else if (before !== line) {
      this.faults.add('an event has two texts', `${place}: event ${id} was ${before} and is ${line}`);
    } else {
      const first = times[id - 1] ?? now;
      if (reading.opened < first && this.calm(reading.node, first)) this.lag.add(now - first);
    }
    reading.last = id;
  }

  /** Something is done to whoever has that mark. */
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
export const questionOf = (line: string): string => runOf(line)?.await_request?.message.parts[0]?.content ?? '';
