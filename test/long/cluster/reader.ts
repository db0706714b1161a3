import type { IncomingMessage } from 'node:http';
import type { Dice } from '../../support/dice.ts';
import { byNode } from './balancer.ts';
import { isOver, type Known, type Ledger, type Reading } from './ledger.ts';
import { passed } from './torment.ts';
import { Cut, Failed, frames, Hung, type Wire } from './wire.ts';

/** Milliseconds without a word, comments included, after which a reader tries another connection. */
const idleTimeout = 25_000;

export interface ReaderOptions {
  readonly wire: Wire;
  readonly ledger: Ledger;
  readonly dice: Dice;
  /** Told what it sees, an event once. */
  readonly sees?: (id: number, line: string, node: string) => void;
}

/** Somebody who reads a run from its first event to its last, over as many connections, and nodes, as that takes. */
export class Reader {
  readonly #known: Known;
  readonly #options: ReaderOptions;
  readonly #reading: Reading = { last: 0, node: '', opened: 0 };

  constructor(known: Known, options: ReaderOptions) {
    this.#known = known;
    this.#options = options;
    known.readers.push(this.#reading);
  }

  /** Reads until the run is over; first what a request of its own was answered with, where there is that. */
  async follow(first?: IncomingMessage): Promise<void> {
    if (first !== undefined) await this.#read(first);
    while (!this.#done()) {
      const before = this.#reading.last;
      const stream = await this.#connect();
      if (stream !== undefined) await this.#read(stream);
      // A node that has nothing to say may be one that is stopping.
      if (this.#reading.last === before) await passed(50 + this.#options.dice.below(150));
    }
  }

  #done(): boolean {
    return this.#reading.last > 0 && this.#reading.last === this.#known.lines.length && isOver(this.#known);
  }

  /** Opens the stream after the last event; undefined where that failed. */
  async #connect(): Promise<IncomingMessage | undefined> {
    const { wire, ledger } = this.#options;
    const { run_id } = this.#known;
    const { last } = this.#reading;
    if (last > 0) ledger.reconnects += 1;
    const headers = { accept: 'text/event-stream', ...(last > 0 && { 'last-event-id': String(last) }) };
    try {
      const stream = await wire.open(`/runs/${run_id}/events`, { headers });
      if (stream.statusCode === 200) return stream;
      stream.resume();
      if (stream.statusCode !== 503 && stream.statusCode !== 502) {
        const what = `run ${run_id} after event ${last}, ${stream.headers[byNode]}: ${stream.statusCode}`;
        ledger.faults.add('a reader was refused', what);
      }
    } catch (error) {
      if (error instanceof Hung) ledger.faults.add('a request was not answered', error.message);
      if (!(error instanceof Cut)) throw error;
    }
    return undefined;
  }

  /** Reads a stream until its end, or until this reader has had enough of it. */
  async #read(stream: IncomingMessage): Promise<void> {
    const { ledger, dice, sees } = this.#options;
    const reading = this.#reading;
    const node = String(stream.headers[byNode] ?? '');
    if (reading.last > 0 && node !== reading.node) ledger.switches += 1;
    reading.node = node;
    reading.opened = performance.now();
    const drop = reading.last + dice.of(1 + dice.below(5), 1 + dice.below(25), 1 + dice.below(25), 1_000_000);
    const leaves = dice.next() < 0.25;
    const timer = setTimeout(() => stream.destroy(), leaves ? 100 + dice.below(1_500) : idleTimeout);
    try {
      for await (const { id, line } of frames(stream)) {
        if (!leaves) timer.refresh();
        ledger.see(this.#known, reading, id, line);
        sees?.(id, line, node);
        if (id >= drop) break;
      }
    } catch (error) {
      const { run_id, order } = this.#known;
      const place = `run ${run_id} (${order.kind}) after event ${reading.last} from ${node}: ${String(error)}`;
      if (!(error instanceof Failed)) ledger.faults.add('a stream was no stream', place);
      else if (ledger.storeAway(reading.opened)) ledger.failedStreams += 1;
      else ledger.faults.add('a stream ended with an error', place);
    } finally {
      clearTimeout(timer);
    }
  }
}
