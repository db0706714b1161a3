import { concat, defer, from, map, NEVER, of, range } from 'rxjs';
import { expect } from 'vitest';
import { LocalDispatcher } from '../../src/dispatchers/local.ts';
import { type Agent, createServer, defineAgent, type Event, type Run, type Store } from '../../src/index.ts';
import { faulty, type Method, methods, newPlan, type Plan } from './faulty-store.ts';
import { parseFrames, textOf } from './serve.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const limits = { sweepInterval: 2, requestTimeout: 2_000, shutdownGrace: 0, idempotencyTtl: 60_000 };

type App = Awaited<ReturnType<typeof createServer>>;

/** Agents that each use other methods of the store. `released` lets the long one end in its second execution. */
function agentsOf(released: () => boolean): Agent[] {
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
class Caller {
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

/**
 * Performs the script: runs in every mode, with sessions, steps, a reply, a queue, a cancel, a restart and deletions,
 * over a store of which one call fails. Every run has to end as without the failure.
 */
async function perform(store: Store, plan: Plan): Promise<void> {
  const session_id = '77777777-7777-4777-8777-777777777777';
  const state = { released: false };
  const start = (): Promise<App> =>
    createServer({
      agents: agentsOf(() => state.released),
      store: faulty(store, plan),
      dispatcher: new LocalDispatcher(),
      limits,
      docs: false,
      protocols: [],
      playground: false,
    });
  let app = await start();
  const caller = new Caller(() => app);
  const echo = await caller.run('echo', { session_id });
  expect([echo.status, textOf(echo)]).toEqual(['completed', 'hi']);
  const streamed = await caller.ask('POST', '/runs', {
    agent_name: 'tokens',
    input: [{ parts: [] }],
    mode: 'stream',
  });
  const seen = parseFrames(streamed.body);
  expect(seen.map(({ id }) => id)).toEqual(seen.map((_, index) => index + 1));
  expect(seen.at(-1)?.event.type).toBe('run.completed');
  const approve = await caller.run('approve', { session_id });
  expect(approve.status).toBe('awaiting');
  const await_resume = { type: 'message', message: { parts: [{ content: 'yes' }] } };
  await caller.ask('POST', `/runs/${approve.run_id}`, { await_resume });
  expect(textOf(await caller.settled(approve.run_id))).toBe('hhpsyes');
  const busy = { 'if-busy': 'enqueue' };
  const first = await caller.run('never', { session_id, mode: 'async' }, busy);
  const second = await caller.run('echo', { session_id, mode: 'async' }, busy);
  await caller.ask('POST', `/runs/${first.run_id}/cancel`);
  expect((await caller.settled(first.run_id)).status).toBe('cancelled');
  expect((await caller.settled(second.run_id)).status).toBe('completed');
  const long = await caller.run('long', { mode: 'async' });
  for (let events: Event[] = []; events.length < 3; )
    ({ events } = JSON.parse((await caller.ask('GET', `/runs/${long.run_id}/events`)).body));
  await app.close();
  state.released = true;
  app = await start();
  await app.ready();
  expect(textOf(await caller.settled(long.run_id))).toBe('ab');
  await followed(
    store,
    caller,
    seen.map(({ event }) => event),
  );
  await app.close();
}

/** Requests about final runs, and about deleted ones. */
async function followed(store: Store, caller: Caller, seen: readonly Event[]): Promise<void> {
  const { runs }: { runs: Run[] } = JSON.parse((await caller.ask('GET', '/runs')).body);
  expect(runs).toHaveLength(6);
  expect((await caller.feed()).toSorted()).toEqual(runs.map(({ run_id }) => run_id).toSorted());
  const streamed = runs.find(({ agent_name }) => agent_name === 'tokens');
  const { events } = JSON.parse((await caller.ask('GET', `/runs/${streamed?.run_id}/events`)).body);
  expect(events).toEqual(seen);
  const session_id = runs.find(({ agent_name }) => agent_name === 'echo')?.session_id;
  const session = JSON.parse((await caller.ask('GET', `/sessions/${session_id}`)).body);
  // Input and output of its three completed runs; the one that awaited has two output messages, a question and a reply.
  expect(session.history).toHaveLength(9);
  expect((await caller.ask('GET', new URL(session.state).pathname)).body).toBe('{"paid":true}');
  expect((await caller.ask('GET', '/agents/echo')).status).toBe(200);
  expect(await store.unfinished(undefined, '', 10)).toEqual([]);
  expect((await caller.ask('DELETE', `/runs/${streamed?.run_id}`)).status).toBe(204);
  expect((await caller.ask('DELETE', `/sessions/${session_id}`)).status).toBe(204);
  expect((await caller.ask('GET', `/sessions/${session_id}`)).status).toBe(404);
}

/** Methods that the script does not call: those of operators' commands and of webhooks. */
const others: readonly Method[] = [
  'sessionsOf',
  'removeOwner',
  'claimDeliveries',
  'finishDelivery',
  'delivery',
  'deliveries',
  'pendingDeliveries',
  'urlFailures',
  'replayDelivery',
];

/** Methods that the script calls. */
export const scripted = methods.filter((method) => !others.includes(method));

/** Methods that the engine's timers call repeatedly; only their first calls belong to the script. */
const periodic: readonly Method[] = ['due', 'sweep', 'unfinished', 'run'];

/** Performs the script over an empty store, which `open` returns and which is closed then. */
async function performOnce(open: () => Promise<Store>, plan: Plan): Promise<void> {
  const store = await open();
  try {
    await perform(store, plan);
  } finally {
    await store.close();
  }
}

/** The number of calls of each method in the script without a failure. */
export async function countCalls(open: () => Promise<Store>): Promise<Plan['calls']> {
  const plan = newPlan();
  await performOnce(open, plan);
  return plan.calls;
}

/**
 * Performs the script with the first call of a method failing, then with the second, and so on. `calls` is what the
 * script calls without a failure. `most` limits the failing calls, which are spread over all. Returns their number.
 */
export async function failEachCall(
  open: () => Promise<Store>,
  method: Method,
  calls: Plan['calls'],
  most = Number.POSITIVE_INFINITY,
): Promise<number> {
  const all = calls[method] ?? 0;
  const script = periodic.includes(method) ? Math.min(all, 12) : all;
  const count = Math.min(script, most);
  for (let n = 0; n < count; n += 1) {
    const call = 1 + Math.floor((n * script) / count);
    await performOnce(open, newPlan({ [method]: { fails: call } }));
  }
  return count;
}
