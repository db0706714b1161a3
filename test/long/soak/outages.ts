import type { Dice } from '../../support/dice.ts';
import type { Started } from '../../support/servers.ts';
import { balancerHeader } from './balancer.ts';
import { Durations, type Faults, sleep } from './measurements.ts';
import { Cut, type Exchange, type Wire } from './wire.ts';

/** Milliseconds until a request during an outage has to be answered. */
const maxResponse = 5_000;
/** Milliseconds until a node has to notice that its store is away, and that it is back. */
const maxNotice = 1_000;
const maxReturn = 10_000;
/** Milliseconds between two readiness checks of a node. */
const pollInterval = 100;

interface Outage {
  readonly from: number;
  /** When the store's process had exited, and when it accepted connections again. */
  gone: number;
  to: number;
  readonly how: 'stop' | 'crash';
}

/** Restarts the store while the nodes stay up, and checks the responses that clients get meanwhile. */
export class Outages {
  readonly #server: Started;
  readonly #dice: Dice;
  readonly #faults: Faults;
  readonly #outages: Outage[] = [];
  readonly responseTimes = new Durations();
  readonly returnTimes = new Durations();
  /** Counts of requests and statuses while the store was away. */
  readonly statuses: Record<string, number> = {};

  constructor(server: Started, dice: Dice, faults: Faults) {
    this.#server = server;
    this.#dice = dice;
    this.#faults = faults;
  }

  get count(): number {
    return this.#outages.length;
  }

  /** Whether the store was away at some moment since a time. */
  away(since: number): boolean {
    return this.#outages.some(({ to }) => to + maxNotice > since);
  }

  /** Restarts the store several times, while `isActive`. Calls `onOutage` in the middle of each outage. */
  async play(times: number, isActive: () => boolean, onOutage: () => void): Promise<void> {
    for (let turn = 0; turn < times; turn += 1) {
      await sleep(2_000 + this.#dice.below(4_000));
      if (!isActive()) return;
      const how = this.#dice.of<'stop' | 'crash'>('stop', 'crash');
      const outage: Outage = {
        from: performance.now(),
        gone: Number.POSITIVE_INFINITY,
        to: Number.POSITIVE_INFINITY,
        how,
      };
      this.#outages.push(outage);
      await (how === 'stop' ? this.#server.halt() : this.#server.kill());
      outage.gone = performance.now();
      onOutage();
      // Sometimes it is back before the nodes have noticed.
      await sleep(this.#dice.of(50, 2_000, 2_500) + this.#dice.below(1_500));
      await this.#server.restart();
      outage.to = performance.now();
    }
  }

  /** Checks each response: one during an outage has to be a 503 or correct, and in time. */
  onResponse({ method, path, status, headers, startedAt, duration, slow }: Exchange): void {
    const request = `${method} ${path}`;
    if (status === 503 && headers['retry-after'] === undefined) this.#faults.add('a 503 has no Retry-After', request);
    if (status === 500) this.#faults.add('a response has status 500', request);
    const outage = this.#outages.find(({ from, to }) => startedAt >= from && startedAt < to);
    if (outage === undefined) return;
    if (headers[balancerHeader] !== undefined)
      this.#faults.add('no node was healthy while the store was away', request);
    const kind = `${method} ${path.replace(/[0-9a-f-]{36}/, 'ID')} → ${status}`;
    this.statuses[kind] = (this.statuses[kind] ?? 0) + 1;
    if (slow) return;
    this.responseTimes.add(duration);
    if (duration > maxResponse)
      this.#faults.add('a response took too long while the store was away', `${request}: ${duration} ms`);
  }

  /** Polls `GET /ready` of a node and checks the responses. */
  async watch(node: Wire, name: string, isActive: () => boolean): Promise<void> {
    let back: Outage | undefined;
    while (isActive()) {
      const began = performance.now();
      const status = await readiness(node);
      const ended = performance.now();
      const now = this.#outages.at(-1);
      const away = now !== undefined && began > now.gone + maxNotice && ended < now.to;
      const place = `${name}, ${now?.how}, ${Math.round(began - (now?.gone ?? 0))} ms after it went away`;
      if (ended - began > maxResponse) this.#faults.add('GET /ready took too long', `${place}: ${ended - began} ms`);
      if (away && status !== 503)
        this.#faults.add('GET /ready does not report that the store is away', `${place}: ${status}`);
      if (now !== undefined && began > now.to && back !== now) {
        if (status === 200) {
          this.returnTimes.add(ended - now.to);
          back = now;
        } else if (began > now.to + maxReturn) {
          this.#faults.add('GET /ready does not report that the store is back', `${place}: ${status}`);
        }
      }
      await sleep(pollInterval);
    }
  }
}

/** The response to `GET /ready`: its status, or 200 with an unexpected body; undefined without a response. */
export async function readiness(node: Wire): Promise<number | string | undefined> {
  try {
    const { status, text } = await node.call('/ready');
    return status === 200 && text !== '{"status":"ready"}' ? `200 ${text}` : status;
  } catch (error) {
    if (!(error instanceof Cut)) throw error;
    return undefined;
  }
}
