import type { Run } from '../../../src/index.ts';
import type { Dice } from '../../support/dice.ts';
import type { Known, Ledger } from './ledger.ts';
import { sleep } from './measurements.ts';
import { Reader } from './reader.ts';
import { Cut, type Wire } from './wire.ts';

/** Reads runs of other clients while the server is disturbed. */
export class Auditor {
  readonly #wire: Wire;
  readonly #ledger: Ledger;
  readonly #dice: Dice;

  constructor(wire: Wire, ledger: Ledger, dice: Dice) {
    this.#wire = wire;
    this.#ledger = ledger;
    this.#dice = dice;
  }

  /** One random check of a recent run. */
  async audit(): Promise<void> {
    const recent = [...this.#ledger.runs.values()].slice(-100);
    const known = recent[this.#dice.below(recent.length)];
    const newest = recent.at(-1);
    if (known === undefined || newest === undefined) return sleep(50);
    try {
      const choice = this.#dice.next();
      if (choice < 0.4) await this.#readFromAnywhere(known);
      else if (choice < 0.8) await this.#compareLog(known);
      else await this.#list(newest);
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
      await sleep(50);
    }
  }

  /** Reads a run from a random event to its end. */
  #readFromAnywhere(known: Known): Promise<void> {
    const options = { wire: this.#wire, ledger: this.#ledger, dice: this.#dice, direct: true };
    return new Reader(known, options, this.#dice.below(known.lines.length + 1)).follow();
  }

  /** Every event that a client has received is still in the log. */
  async #compareLog({ run_id, lines }: Known): Promise<void> {
    // Before the request: the response need not have events that arrive meanwhile.
    const received = [...lines];
    const log = await this.#get(`/runs/${run_id}/events`);
    if (log === undefined) return;
    const { events }: { events: object[] } = JSON.parse(log);
    for (const [index, line] of received.entries()) {
      if (line === undefined || JSON.stringify(events[index]) === JSON.stringify(JSON.parse(line))) continue;
      const place = `event ${index + 1} of run ${run_id}: received ${line}, the log has ${JSON.stringify(events[index])}`;
      this.#ledger.faults.add('a received event is not in the log', place);
    }
    this.#ledger.audits += 1;
  }

  /** Lists are sorted by id, newest first, and have the runs that were acknowledged. */
  async #list({ run_id, session_id }: Known): Promise<void> {
    const bySession = `/runs?session_id=${session_id}&limit=100`;
    const path = this.#dice.of('/runs?limit=50', '/runs?status=awaiting', bySession);
    const page = await this.#get(path);
    if (page === undefined) return;
    const ids = JSON.parse(page).runs.map((run: Run) => run.run_id);
    if (ids.join() !== ids.toSorted().reverse().join())
      this.#ledger.faults.add('a list is not sorted', `${path}: ${ids}`);
    if (path === bySession && !ids.includes(run_id))
      this.#ledger.faults.add('a list lacks a run', `${path} lacks run ${run_id}`);
  }

  /** The body of a GET; undefined if the server is starting or stopping. */
  async #get(path: string): Promise<string | undefined> {
    const { status, text } = await this.#wire.call(path);
    if (status === 200) return text;
    if (status !== 503) this.#ledger.faults.add('an unexpected response', `GET ${path}: ${status} ${text}`);
    return undefined;
  }
}
