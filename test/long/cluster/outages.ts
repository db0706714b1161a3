import type { Dice } from '../../support/dice.ts';
import type { Started } from '../../support/servers.ts';
import { byBalancer } from './balancer.ts';
import type { Faults } from './faults.ts';
import { Times } from './times.ts';
import { passed } from './torment.ts';
import { Cut, type Exchange, type Wire } from './wire.ts';

/** Milliseconds in which whatever is asked in an outage has to be answered. */
const mostAnswer = 5_000;
/** Milliseconds in which a node has to notice that its store is gone, and that it is back. */
const mostNotice = 1_000;
const mostReturn = 10_000;
/** Between two looks at whether a node is ready. */
const pollInterval = 100;

interface Outage {
  readonly from: number;
  /** When its process was gone, and when there was one again that takes connections. */
  gone: number;
  to: number;
  readonly how: 'stop' | 'crash';
}

/** The store goes away and comes back while the nodes stay up; and what clients are told meanwhile. */
export class Outages {
  readonly #server: Started;
  readonly #dice: Dice;
  readonly #faults: Faults;
  readonly #outages: Outage[] = [];
  readonly answers = new Times();
  readonly returns = new Times();
  /** What requests of each kind were answered while the store was away. */
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
    return this.#outages.some(({ to }) => to + mostNotice > since);
  }

  /** Restarts the store so many times, for as long as it goes. `begun` is told of each outage when it is under way. */
  async play(times: number, going: () => boolean, begun: () => void): Promise<void> {
    for (let turn = 0; turn < times; turn += 1) {
      await passed(2_000 + this.#dice.below(4_000));
      if (!going()) return;
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
      begun();
      // Now and then it is back before anybody has noticed.
      await passed(this.#dice.of(50, 2_000, 2_500) + this.#dice.below(1_500));
      await this.#server.restart();
      outage.to = performance.now();
    }
  }

  /** Every answer to a client: one that came while the store was away has to say so, or be right, and soon. */
  answered({ method, path, status, headers, began, took, slow }: Exchange): void {
    const what = `${method} ${path}`;
    if (status === 503 && headers['retry-after'] === undefined)
      this.#faults.add('a 503 came without Retry-After', what);
    if (status === 500) this.#faults.add('a request was answered with 500', what);
    const outage = this.#outages.find(({ from, to }) => began >= from && began < to);
    if (outage === undefined) return;
    if (headers[byBalancer] !== undefined) this.#faults.add('no node was well while the store was away', what);
    const kind = `${method} ${path.replace(/[0-9a-f-]{36}/, 'ID')} → ${status}`;
    this.statuses[kind] = (this.statuses[kind] ?? 0) + 1;
    if (slow) return;
    this.answers.add(took);
    if (took > mostAnswer) this.#faults.add('an answer took too long while the store was away', `${what}: ${took} ms`);
  }

  /** Asks a node whether it is ready, again and again, and holds it to that. */
  async watch(node: Wire, name: string, going: () => boolean): Promise<void> {
    let back: Outage | undefined;
    while (going()) {
      const began = performance.now();
      const status = await readiness(node);
      const ended = performance.now();
      const now = this.#outages.at(-1);
      const away = now !== undefined && began > now.gone + mostNotice && ended < now.to;
      const place = `${name}, ${now?.how}, ${Math.round(began - (now?.gone ?? 0))} ms after it went away`;
      if (ended - began > mostAnswer) this.#faults.add('GET /ready took too long', `${place}: ${ended - began} ms`);
      if (away && status !== 503)
        this.#faults.add('GET /ready does not tell that the store is away', `${place}: ${status}`);
      if (now !== undefined && began > now.to && back !== now) {
        if (status === 200) {
          this.returns.add(ended - now.to);
          back = now;
        } else if (began > now.to + mostReturn) {
          this.#faults.add('GET /ready does not tell that the store is back', `${place}: ${status}`);
        }
      }
      await passed(pollInterval);
    }
  }
}

/** What `GET /ready` says: 200 with its body, or another status; undefined where it says nothing. */
export async function readiness(node: Wire): Promise<number | string | undefined> {
  try {
    const { status, text } = await node.call('/ready');
    return status === 200 && text !== '{"status":"ready"}' ? `200 ${text}` : status;
  } catch (error) {
    if (!(error instanceof Cut)) throw error;
    return undefined;
  }
}
