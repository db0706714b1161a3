import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

const body = JSON.stringify({ agent_name: 'echo', input: [{ parts: [{ content: 'hi' }] }] });

export interface Times {
  readonly median: number;
  /** 99 % of the requests took no longer. */
  readonly p99: number;
  /** Requests that were not answered with 200. */
  readonly failed: number;
}

/** The callers that do not attack: they create a run each 10 ms, and wait for its end. */
export class Others {
  readonly #url: string;
  readonly #keys: readonly string[];
  /** It uses its connections in turn: the server closes those that are idle. */
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 20, scheduling: 'fifo' });
  #next = 0;

  constructor(url: string, keys: readonly string[]) {
    this.#url = url;
    this.#keys = keys;
  }

  /** The times of so many requests, in milliseconds. */
  async measure(count: number): Promise<Times> {
    const times: number[] = [];
    let failed = 0;
    const pending: Promise<void>[] = [];
    for (let sent = 0; sent < count; sent += 1) {
      const from = performance.now();
      pending.push(
        this.#create().then((status) => {
          times.push(performance.now() - from);
          if (status !== 200) failed += 1;
        }),
      );
      await wait(10);
    }
    await Promise.all(pending);
    times.sort((a, b) => a - b);
    const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
    return { median: at(0.5), p99: at(0.99), failed };
  }

  close(): void {
    this.#agent.destroy();
  }

  #create(): Promise<number> {
    const key = this.#keys[this.#next % this.#keys.length];
    this.#next += 1;
    return new Promise((resolve) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
      const sent = request(`${this.#url}/runs`, { method: 'POST', agent: this.#agent, headers }, (response) => {
        response.resume().on('close', () => resolve(response.statusCode ?? 0));
      });
      sent.on('error', () => resolve(0));
      sent.end(body);
    });
  }
}
