import { type LiveMode, type SSEResilienceOptions, stream } from '@durable-streams/client';
import { expect } from 'vitest';
import type { Event } from '../../../src/index.ts';
import { offsetAfter } from '../../../src/protocols/durable-streams/request.ts';
import { Tap } from '../../support/agents.ts';
import { CuttingProxy } from '../../support/cutting-proxy.ts';
import { ask, eventsOf, type Served } from '../../support/serve.ts';

export interface Followed {
  readonly events: Event[];
  /** How often the connection failed, so that the reader began again after its last event. */
  readonly failures: number;
}

interface FollowOptions {
  readonly live: LiveMode;
  readonly headers?: Record<string, string>;
  readonly fetch?: typeof fetch;
  readonly sseResilience?: SSEResilienceOptions;
  /** Called for each event, with its number, before the next one is read. */
  readonly onEvent?: (event: Event, n: number) => void;
}

const impatient = {
  backoffOptions: { initialDelay: 1, maxDelay: 5, multiplier: 1 },
  sseResilience: { logWarnings: false },
  warnOnHttp: false,
};

/**
 * Follows a stream with the official client until it is closed, and goes on after its last event where a connection
 * breaks. Not with `subscribeJson`: it does not tell of a body that breaks off after the headers of a closed stream.
 */
export async function follow(url: string, { live, onEvent = () => {}, ...options }: FollowOptions): Promise<Followed> {
  const events: Event[] = [];
  for (let failures = 0; ; ) {
    try {
      const offset = events.length === 0 ? '-1' : offsetAfter(events.length);
      const response = await stream<Event>({ url, offset, live, ...impatient, ...options });
      // Rejected beside the iteration; without a handler, it would end the process.
      response.closed.catch(() => undefined);
      for await (const event of response.jsonStream()) onEvent(event, events.push(event));
      if (response.streamClosed) return { events, failures };
    } catch {
      failures += 1;
    }
  }
}

/** Bytes of the longest answers to a reader of the run below. */
const longest = 4_200;

/**
 * Follows runs whose first three connections are cut after so many bytes: 1, 1 + step and so on. Each connection goes
 * to the next node. The run is as far as its reader, so that each connection has live events.
 */
export async function followWithCuts(
  live: LiveMode,
  step: number,
  open: (tap: Tap) => Promise<readonly [Served, ...Served[]]>,
): Promise<void> {
  const tap = new Tap();
  const nodes = await open(tap);
  const [first] = nodes;
  let cuts = 0;
  for (let bytes = 1; bytes < longest; bytes += step) {
    const proxies = await Promise.all(nodes.map(({ url }) => CuttingProxy.open(url, [bytes, bytes + 700, bytes])));
    let requests = 0;
    const inTurn: typeof fetch = (input, init) => {
      requests += 1;
      const { pathname, search } = new URL(String(input));
      return fetch(`${proxies[requests % proxies.length]?.url}${pathname}${search}`, init);
    };
    const { run_id } = await (await first.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    await tap.started();
    let pushed = 0;
    const onEvent = ({ type }: Event): void => {
      if (type !== 'run.in-progress' && type !== 'message.part') return;
      pushed += 1;
      if (pushed <= 6) tap.push(`token ${pushed} 👋 `);
      else tap.complete();
    };
    const { events } = await follow(`${first.url}/runs/${run_id}/stream`, { live, onEvent, fetch: inTurn });
    for (const proxy of proxies) {
      cuts += proxy.cuts;
      await proxy.close();
    }
    expect(events.length).toBe(11);
    for (const one of nodes) expect(events).toEqual(await eventsOf(one, run_id));
  }
  expect(cuts).toBeGreaterThan(longest / step);
}
