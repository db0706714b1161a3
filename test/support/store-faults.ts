import { expect } from 'vitest';
import { createServer, type Event, type Run, type Store } from '../../src/index.ts';
import { faulty, type Method, newPlan, type Plan } from './faulty-store.ts';
import { performOwned } from './owner-faults.ts';
import { type App, agentsOf, Caller, limits } from './scripted-client.ts';
import { parseFrames, textOf } from './serve.ts';

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
      limits,
      docs: false,
      protocols: [],
      playground: false,
    });
  let app = await start();
  const caller = new Caller(() => app);
  const echo = await caller.run('echo', { session_id });
  expect([echo.status, textOf(echo)]).toEqual(['completed', 'hi']);
  const streamed = await caller.ask('POST', '/runs', { agent_name: 'tokens', input: [{ parts: [] }], mode: 'stream' });
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
  // Input and output of its three completed runs, of which the one that awaited has two output messages, a question and a
  // reply; and of the cancelled run, whose output is empty.
  expect(session.history).toHaveLength(11);
  expect((await caller.ask('GET', new URL(session.state).pathname)).body).toBe('{"paid":true}');
  expect((await caller.ask('GET', '/agents/echo')).status).toBe(200);
  expect(await store.unfinished(undefined, '', 10)).toEqual([]);
  expect((await caller.ask('DELETE', `/runs/${streamed?.run_id}`)).status).toBe(204);
  expect((await caller.ask('DELETE', `/sessions/${session_id}`)).status).toBe(204);
  expect((await caller.ask('GET', `/sessions/${session_id}`)).status).toBe(404);
}

/** Methods that the script of owners calls; the script of runs calls all others. */
const ofOwners: readonly Method[] = [
  'runsByStatusTime',
  'countRuns',
  'compareAndSet',
  'openRuns',
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

/** Methods that timers and polls call repeatedly; only their first calls belong to the script. */
const periodic: readonly Method[] = ['due', 'sweep', 'unfinished', 'run', 'claimDeliveries', 'deliveries'];

/** Performs a script over an empty store, which `open` returns and which is closed then. */
async function performOnce(script: typeof perform, open: () => Promise<Store>, plan: Plan): Promise<void> {
  const store = await open();
  try {
    await script(store, plan);
  } finally {
    await store.close();
  }
}

/** The number of calls of each method in its script without a failure. */
export async function countCalls(open: () => Promise<Store>): Promise<Plan['calls']> {
  const [runs, owners] = [newPlan(), newPlan()];
  await performOnce(perform, open, runs);
  await performOnce(performOwned, open, owners);
  return { ...runs.calls, ...Object.fromEntries(ofOwners.map((method) => [method, owners.calls[method]])) };
}

/**
 * Performs the script of a method with its first call failing, then with the second, and so on. `calls` is what the
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
    const fails = newPlan({ [method]: { fails: call } });
    await performOnce(ofOwners.includes(method) ? performOwned : perform, open, fails);
  }
  return count;
}
