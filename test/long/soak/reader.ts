import type { IncomingMessage } from 'node:http';
import type { Dice } from '../../support/dice.ts';
import { nodeHeader } from './balancer.ts';
import { isOver, type Known, type Ledger, type Reading, statusOf } from './ledger.ts';
import { sleep } from './measurements.ts';
import { Cut, frames, Hung, StreamFailed, type Wire } from './wire.ts';

/** Milliseconds without a byte, comments included, before a reader reconnects. */
const idleTimeout = 25_000;

export interface ReaderOptions {
  readonly wire: Wire;
  readonly ledger: Ledger;
  readonly dice: Dice;
  /** Whether clients reach the node directly, so that a stream may end early only if something was done to the node. */
  readonly direct: boolean;
  /** Called once for each event. */
  readonly onEvent?: (id: number, line: string, node: string) => void;
}

/** Reads a run to its last event, over any number of connections and nodes. */
export class Reader {
  readonly #known: Known;
  readonly #options: ReaderOptions;
  readonly #reading: Reading;

  /** Starts after the event `last`. */
  constructor(known: Known, options: ReaderOptions, last = 0) {
    this.#known = known;
    this.#options = options;
    this.#reading = { last, node: '', opened: 0 };
  }

  /** Reads until the run is final; `first` is the response that created the run, if that is a stream. */
  async follow(first?: IncomingMessage): Promise<void> {
    this.#known.readers.push(this.#reading);
    if (first !== undefined) await this.readStream(first);
    while (!this.#isComplete()) {
      const before = this.#reading.last;
      const stream = await this.#connect();
      if (stream !== undefined) await this.readStream(stream);
      // A node without new events may be stopping.
      if (this.#reading.last === before) await sleep(50 + this.#options.dice.below(150));
    }
  }

  #isComplete(): boolean {
    return this.#reading.last > 0 && this.#reading.last === this.#known.lines.length && isOver(this.#known);
  }

  /** Opens the stream after the last event; undefined if that fails. */
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
        const place = `run ${run_id} after event ${last}, ${stream.headers[nodeHeader]}: ${stream.statusCode}`;
        ledger.faults.add('a reader was refused', place);
      }
    } catch (error) {
      if (error instanceof Hung) ledger.faults.add('a request got no response', error.message);
      if (!(error instanceof Cut)) throw error;
    }
    return undefined;
  }

  /** Reads a stream to its end, or leaves it after a random number of events or milliseconds. */
  async readStream(stream: IncomingMessage): Promise<void> {
    const { ledger, dice, onEvent } = this.#options;
    const reading = this.#reading;
    const node = String(stream.headers[nodeHeader] ?? 'n0');
    if (reading.node !== '' && node !== reading.node) ledger.switches += 1;
    reading.node = node;
    reading.opened = performance.now();
    const leaveAfter = reading.last + dice.of(1 + dice.below(5), 1 + dice.below(25), 1 + dice.below(25), 1_000_000);
    const leavesInTime = dice.next() < 0.25;
    let left = false;
    const leave = (): void => {
      left = true;
      stream.destroy();
    };
    const timer = setTimeout(leave, leavesInTime ? 100 + dice.below(1_500) : idleTimeout);
    let last = '';
    try {
      for await (const { id, line } of frames(stream)) {
        if (!leavesInTime) timer.refresh();
        // The stream of a resumed run starts with its next event, which the server chooses.
        if (reading.last < 0) reading.last = id - 1;
        ledger.receive(this.#known, reading, id, line);
        onEvent?.(id, line, node);
        last = line;
        if (id >= leaveAfter) return;
      }
      if (!left) this.#checkEnd(last);
    } catch (error) {
      const { run_id, order } = this.#known;
      const place = `run ${run_id} (${order.kind}) after event ${reading.last} from ${node}: ${String(error)}`;
      if (!(error instanceof StreamFailed)) ledger.faults.add('a stream has something other than events', place);
      else if (ledger.storeAway(reading.opened)) ledger.failedStreams += 1;
      else ledger.faults.add('a stream ended with an error', place);
    } finally {
      clearTimeout(timer);
    }
  }

  #checkEnd(last: string): void {
    const { direct, ledger } = this.#options;
    const { node, opened } = this.#reading;
    if (!direct || isOver({ lines: [last] }) || statusOf(last) === 'awaiting' || !ledger.calm(node, opened)) return;
    ledger.faults.add('a stream ended before its run', `run ${this.#known.run_id}: ${last}`);
  }
}
