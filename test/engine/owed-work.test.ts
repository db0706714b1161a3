import { setTimeout as pause } from 'node:timers/promises';
import { map, NEVER, switchMap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { IfBusy } from '../../src/core/agent.ts';
import type { Outcome, Write } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { newId } from '../../src/engine/ids.ts';
import type { Limits } from '../../src/engine/limits.ts';
import type { RunOptions } from '../../src/engine/runs/create.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { durable, echo, never } from '../support/agents.ts';
import { engineOf } from '../support/engine.ts';
import { faulty, type Method, newPlan, type Plan } from '../support/faulty-store.ts';
import { Hold } from '../support/hold.ts';
import { atRest } from '../support/lives.ts';
import { turn } from '../support/turn.ts';

const asks = durable('asks', (_, context) => context.await('?').pipe(map(() => 'answered')));
const lasts = durable('lasts', never.run);
const goesOn = durable('goes-on', (_, context) => context.await('?').pipe(switchMap(() => NEVER)));
const always = { fails: 1, times: Number.POSITIVE_INFINITY };

/** A store that takes no write of one run, and holds other writes. */
class LockedStore extends MemoryStore {
  locked: string | undefined;
  hold: (write: Write) => Promise<void> | undefined = () => undefined;

  override async commit(writes: readonly Write[]): Promise<Outcome[]> {
    if (writes.some(({ row }) => row.run_id === this.locked)) throw new Error('the run is locked');
    await Promise.all(writes.map((write) => this.hold(write)));
    return super.commit(writes);
  }
}

/** An engine whose store fails as the plan says. `create` makes runs of one session. */
async function engineWith(limits: Partial<Limits>) {
  const store = new LockedStore();
  const plan = newPlan();
  const tools = { onFailure() {} };
  const engine = await engineOf(
    [asks, echo, goesOn, lasts, never],
    faulty(store, plan),
    { sweepInterval: 2, ...limits },
    tools,
  );
  const session_id = newId();
  const create = async (agent_name: string, if_busy: IfBusy = 'parallel', options: RunOptions = {}): Promise<string> =>
    (await engine.create({ agent_name, session_id, input: [{ parts: [{ content: 'hi' }] }] }, { if_busy, ...options }))
      .run_id;
  return { engine, store, plan, create };
}

/** Resolves when a run has a status. */
async function until(store: Store, run_id: string, status: string): Promise<void> {
  while ((await store.run(run_id))?.status !== status) await turn();
}

/** Resolves when a method was called so often from now on. */
async function called(plan: Plan, method: Method, count: number): Promise<void> {
  for (const most = (plan.calls[method] ?? 0) + count; (plan.calls[method] ?? 0) < most; ) await turn();
}

/** The newest run of the store. */
async function newest(store: Store): Promise<string> {
  const [row] = await store.runs({}, undefined, 1);
  return row?.run_id ?? '';
}

describe('a run whose creation was taken before the store failed for longer than `storeTimeout`', () => {
  const limits = { requestTimeout: 20, storeTimeout: 1 };

  /** Reads fail as soon as the next run is in the store. */
  const failAfterCreation = (plan: Plan): void => {
    const after = (): void => {
      plan.faults = { unfinished: always, run: always };
    };
    plan.faults.commit = { after };
  };

  it('cancels the others, as `interrupt` says, and begins when the store is back', async () => {
    const { store, plan, create } = await engineWith(limits);
    const first = await create('never');
    failAfterCreation(plan);
    await expect(create('echo', 'interrupt', { idempotency_key: 'k' })).rejects.toThrow('does not answer');
    await called(plan, 'unfinished', 3);
    plan.faults = {};
    await until(store, first, 'cancelled');
    await until(store, await newest(store), 'completed');
  });

  it('is cancelled when the store is back, where its request had no key', async () => {
    const { store, plan, create } = await engineWith(limits);
    await create('never');
    failAfterCreation(plan);
    await expect(create('echo', 'enqueue')).rejects.toThrow('does not answer');
    await called(plan, 'run', 3);
    plan.faults = {};
    await until(store, await newest(store), 'cancelled');
  });
});

it('a run without a key that begins after its request was answered 503 is cancelled', async () => {
  const { engine, store, plan, create } = await engineWith({ requestTimeout: 200, sweepInterval: 60_000 });
  const first = await create('never');
  // Each call is in time, and all together are too late for the request.
  const before = (): Promise<void> => pause(120);
  const endFirst = async (): Promise<void> => {
    plan.faults = {};
    await engine.cancel(first);
    await until(store, first, 'cancelled');
    plan.faults = { commit: { before } };
    await before();
  };
  plan.faults.commit = {
    after: () => {
      plan.faults = { unfinished: { before: endFirst } };
    },
  };
  await expect(create('never', 'enqueue')).rejects.toThrow('does not answer');
  plan.faults = {};
  await until(store, await newest(store), 'cancelled');
});

it('an `interrupt` cancels the run that awaits also where the store fails once meanwhile', async () => {
  const { store, plan, create } = await engineWith({ passivateAfter: 1 });
  const first = await create('asks');
  await atRest(store, first);
  plan.faults.events = { fails: (plan.calls.events ?? 0) + 1 };
  const second = await create('echo', 'interrupt');
  await until(store, first, 'cancelled');
  await until(store, second, 'completed');
});

it('a session whose queue cannot go on does not hold up the queues of others', async () => {
  const { engine, store, plan, create } = await engineWith({});
  const first = await create('never');
  const queued = await create('echo', 'enqueue');
  const session_id = newId();
  const input = [{ parts: [{ content: 'hi' }] }];
  const other = await engine.create({ agent_name: 'never', session_id, input });
  const next = await engine.create({ agent_name: 'echo', session_id, input }, { if_busy: 'enqueue' });
  // Neither queue goes on at the end of its first run.
  plan.faults.unfinished = always;
  for (const run_id of [first, other.run_id]) await engine.cancel(run_id);
  for (const run_id of [first, other.run_id]) await until(store, run_id, 'cancelled');
  await called(plan, 'unfinished', 2);
  store.locked = queued;
  plan.faults = {};
  await until(store, next.run_id, 'completed');
  expect((await store.run(queued))?.status).toBe('created');
});

describe('a run with `on_disconnect: cancel` whose last reader disconnects while the store fails', () => {
  const connected = async (engine: Engine, run_id: string) =>
    engine.connectReader(await engine.openCursor(run_id, { until: 'now' }));

  it('is cancelled when the store takes commits again', async () => {
    const { engine, store, plan, create } = await engineWith({ requestTimeout: 20 });
    const run_id = await create('never', 'parallel', { on_disconnect: 'cancel' });
    const leave = await connected(engine, run_id);
    const hold = new Hold();
    plan.faults.commit = { before: () => hold.come() };
    // The second one is refused because the first one has waited for too long.
    for (let n = 0; n < 2; n += 1) await expect(create('echo')).rejects.toThrow('does not answer');
    leave(true);
    // The time of grace, which is 0, ends before.
    await pause(1);
    hold.letGo();
    await until(store, run_id, 'cancelled');
  });

  it('is cancelled when the store can be read again, where another process may go on with it', async () => {
    const { engine, store, plan, create } = await engineWith({});
    const run_id = await create('lasts', 'parallel', { on_disconnect: 'cancel' });
    const leave = await connected(engine, run_id);
    while ((await store.run(run_id))?.readers === null) await turn();
    plan.faults = { run: always };
    leave(true);
    await called(plan, 'run', 2);
    plan.faults = {};
    await until(store, run_id, 'cancelled');
  });
});

it('a run ends that two requests cancel while it is re-entered, although the store answers neither in time', async () => {
  const { engine, store, plan, create } = await engineWith({ passivateAfter: 1, requestTimeout: 100 });
  const run_id = await create('goes-on');
  await atRest(store, run_id);
  const read = new Hold();
  const byRead = (plan.calls.run ?? 0) + 1;
  plan.faults.run = { before: (call) => (call === byRead ? read.come() : undefined) };
  // This request finds no execution here.
  const first = engine.cancel(run_id);
  await read.held();
  await engine.resume(run_id, { type: 'message', message: { parts: [{ content: 'yes' }] } });
  while ((await store.run(run_id))?.epoch !== 3 || engine.load.working === 0) await turn();
  const [stored, live] = [new Hold(), new Hold()];
  // Only a write of an execution says nothing of the node.
  store.hold = ({ row, node }) => (row.status === 'cancelling' ? (node === null ? stored : live).come() : undefined);
  read.letGo();
  await stored.held();
  const second = engine.cancel(run_id);
  await live.held();
  for (const request of [first, second]) await expect(request).rejects.toThrow('does not answer');
  stored.letGo();
  await until(store, run_id, 'cancelling');
  live.letGo();
  await until(store, run_id, 'cancelled');
});
