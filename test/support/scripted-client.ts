import { concat, defer, from, map, NEVER, of, range } from 'rxjs';
import { expect } from 'vitest';
import { type Agent, type createServer, defineAgent, type Run } from '../../src/index.ts';
import { turn } from './turn.ts';

export const limits = { sweepInterval: 2, requestTimeout: 2_000, shutdownGrace: 0, idempotencyTtl: 60_000 };

export type App = Awaited<ReturnType<typeof createServer>>;

/** Agents that each use other methods of the store. `released` lets the long one end in its second execution. */
export function agentsOf(released: () => boolean): Agent[] {
  const agent = (name: string, run: Agent['run'], durable = false): Agent =>
    defineAgent({ name, description: 'A part of the script.' }, run, { durable });
  return [
    agent('echo', (input) => from(input)),
    agent('tokens', () => range(0, 20).pipe(map((n) => `t${n} `))),
    agent('never', () => NEVER),
    agent(
      'approve',
      (_, context) =>
        concat(
          context.session.history.pipe(map(() => 'h')),
          context.step('paid', () => of('p')),
          defer(() => context.session.setState({ paid: true })).pipe(map(() => 's')),
          context.await('Really?').pipe(map(({ message }) => message.parts[0]?.content ?? '')),
        ),
      true,
    ),
    agent(
      'long',
      () =>
        concat(
          of('a'),
          defer(() => (released() ? of('b') : NEVER)),
        ),
      true,
    ),
  ];
}

/** A client that retries requests after 503. */
export class Caller {
  readonly #app: () => App;
  #keys = 0;

  constructor(app: () => App) {
    this.#app = app;
  }

  async ask(method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object, headers: object = {}): Promise<Answer> {
    this.#keys += 1;
    const key = method === 'POST' && payload !== undefined ? { 'idempotency-key': `k${this.#keys}` } : {};
    for (;;) {
      // An injected request takes no turn of the event loop, which the other work needs.
      await turn();
      const { statusCode, body } = await this.#app().inject({
        method,
        url,
        headers: { ...key, ...headers },
        ...(payload && { payload }),
      });
      if (statusCode !== 503) return { status: statusCode, body };
      expect(body).not.toContain('as planned');
    }
  }

  async run(agent_name: string, more: object = {}, headers: object = {}): Promise<Run> {
    const input = [{ parts: [{ content: 'hi' }] }];
    return JSON.parse((await this.ask('POST', '/runs', { agent_name, input, ...more }, headers)).body);
  }

  /** The ids of the runs that a feed names to a reader that continues from the beginning of time. */
  async feed(): Promise<string[]> {
    for (;;) {
      await turn();
      const headers = { accept: 'text/event-stream', 'last-event-id': '1' };
      const response = await this.#app().inject({ method: 'GET', url: '/runs', headers, payloadAsStream: true });
      let body = '';
      for await (const chunk of response.stream()) {
        body += chunk;
        if (body.includes('event: ready')) break;
      }
      expect(body).not.toContain('as planned');
      if (!body.includes('event: ready')) continue;
      return [...body.matchAll(/"run_id":"([^"]+)"/g)].map(([, run_id = '']) => run_id);
    }
  }

  async settled(run_id: string): Promise<Run> {
    for (;;) {
      const run: Run = JSON.parse((await this.ask('GET', `/runs/${run_id}`)).body);
      if (['completed', 'failed', 'cancelled', 'awaiting'].includes(run.status)) return run;
      await turn();
    }
  }
}

interface Answer {
  readonly status: number;
  readonly body: string;
}
