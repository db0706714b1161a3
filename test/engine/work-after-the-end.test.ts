import {
  concat,
  defer,
  finalize,
  firstValueFrom,
  ignoreElements,
  NEVER,
  type Observable,
  of,
  Subject,
  throwError,
  timer,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Agent, type AgentContext, type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { newId } from '../../src/engine/ids.ts';
import { endingWrite } from '../../src/engine/log/stored-run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { engineOf } from '../support/engine.ts';
import { begin, eventsOf, runOf, toTheEnd, whole } from '../support/lives.ts';
import { textOf } from '../support/run-output.ts';

const agentOf = (run: AgentFunction, durable = false): Agent =>
  defineAgent({ name: 'late', description: 'Comes late.' }, run, { durable });
const echo = defineAgent({ name: 'echo', description: 'Echoes.' }, () => of('called'));

/** Everything that an agent could start; each resolves to its result. */
const works: [string, (context: AgentContext) => Promise<unknown>][] = [
  ['a step', (context) => firstValueFrom(context.step('s', () => of('worked')))],
  ['a call', (context) => firstValueFrom(context.call('echo', 'x'))],
  ['an await', (context) => firstValueFrom(context.await('?'))],
  ['setState', (context) => context.session.setState({ late: true })],
  ['a look at the state', (context) => context.session.state()],
];

const ways: [string, () => Observable<string>, (engine: Engine, run_id: string) => Promise<unknown>][] = [
  ['completed', () => of('done'), async () => undefined],
  ['failed', () => throwError(() => new Error('bad')), async () => undefined],
  ['was cancelled', () => NEVER, (engine, run_id) => engine.cancel(run_id)],
];

describe.each([false, true])('after the end of a run (durable: %s)', (durable) => {
  describe.each(ways)('that %s', (_, output, end) => {
    it.each(works)('%s does not start, and rejects with the reason', async (_, work) => {
      let context: AgentContext | undefined;
      const agent = agentOf((_, given) => {
        context = given;
        return output();
      }, durable);
      const store = new MemoryStore();
      const engine = await engineOf([agent, echo], store);
      const run_id = await begin(engine, 'late');
      while (context === undefined) await new Promise(setImmediate);
      await end(engine, run_id);
      const { run, events } = await toTheEnd(engine, run_id);
      await expect(work(context)).rejects.toMatchObject({ kind: 'run_not_open' });
      await new Promise(setImmediate);
      expect(await eventsOf(engine, run_id)).toEqual(events);
      expect((await store.session(run.session_id ?? ''))?.state ?? null).toBe(null);
    });
  });

  it('open awaits and steps reject when the run is cancelled, so that the cancel need not wait for `cancelGrace`', async () => {
    const heard: unknown[] = [];
    const agent = agentOf(async (_, context) => {
      const waits = [firstValueFrom(context.step('long', () => NEVER)), firstValueFrom(context.await('?'))];
      for (const one of durable ? waits : waits.slice(1))
        await one.catch((error: { kind: string }) => heard.push(error.kind));
      return 'stopped';
    }, durable);
    const engine = await engineOf([agent], new MemoryStore(), { cancelGrace: 0 });
    const run_id = await begin(engine, 'late');
    while ((await runOf(engine, run_id)).status !== 'awaiting') await new Promise(setImmediate);
    await engine.cancel(run_id);
    expect((await toTheEnd(engine, run_id)).run.status).toBe('cancelled');
    expect(heard).toEqual(durable ? ['run_not_open', 'run_not_open'] : ['run_not_open']);
  });
});

/** All that the store has of a run. */
async function storedOf(store: MemoryStore, run_id: string): Promise<unknown> {
  const row = await store.run(run_id);
  if (row === undefined) throw new Error('the run is in the store');
  const [events, journal] = [await store.events(run_id, 0, 1_000), await store.journal(run_id)];
  return { row, events, journal, state: (await store.session(row.session_id))?.state ?? null };
}

/** A run of an agent that has this output, and the context that it was given. */
async function begun(output: Observable<string>, durable: boolean) {
  let context: AgentContext | undefined;
  const agent = agentOf((_, given) => {
    context = given;
    return output;
  }, durable);
  const store = new MemoryStore();
  const engine = await startEngine([agent, echo], store);
  const run_id = await begin(engine, 'late');
  while (context === undefined) await new Promise(setImmediate);
  return { store, engine, run_id, context };
}

describe('after a run has left its process', () => {
  it.each(works)('%s does not start, and never settles', async (_, work) => {
    const { store, engine, run_id, context } = await begun(NEVER, true);
    await engine.stop();
    const stored = await storedOf(store, run_id);
    expect(await outcomeOf(work(context))).toBe('never settles');
    expect(await storedOf(store, run_id)).toEqual(stored);
    expect(stored).toMatchObject({ row: { status: 'in-progress' } });
  });
});

/** How a promise has settled some turns later. */
async function outcomeOf(work: Promise<unknown>): Promise<unknown> {
  const settled = work.catch((error: unknown) => error);
  for (let turns = 0; turns < 10; turns += 1) await new Promise(setImmediate);
  return Promise.race([settled, 'never settles']);
}

const refused = { kind: 'run_not_open', message: expect.stringContaining('this process no longer owns the run') };

describe.each([
  [false, refused],
  [true, 'never settles'],
])('after another process has taken a run over (durable: %s)', (durable, outcome) => {
  it.each(works)('%s does not start', async (_, work) => {
    const tokens = new Subject<string>();
    const { store, engine, run_id, context } = await begun(tokens, durable);
    const run = await runOf(engine, run_id);
    const row = await store.run(run_id);
    if (row === undefined) throw new Error('the run is in the store');
    // As a cancel in another process writes it, of which no notification comes.
    await store.commit([endingWrite(row, run, new Date().toISOString())]);
    const stored = await storedOf(store, run_id);
    tokens.next('fenced');
    while (!context.signal.aborted) await new Promise(setImmediate);
    expect([await outcomeOf(work(context))]).toMatchObject([outcome]);
    expect(await storedOf(store, run_id)).toEqual(stored);
    expect(stored).toMatchObject({ row: { status: 'cancelled', epoch: row.epoch + 1 } });
    await engine.stop();
  });
});

describe('work that an agent starts in its teardown', () => {
  it('writes nothing in the turn of the final event', async () => {
    const store = new MemoryStore();
    let refused: unknown;
    const agent = agentOf((_, context) =>
      of('done').pipe(
        finalize(() => {
          context.usage({ tokens: 5 });
          context.session.setState({ written: 'after the end' }).catch((error: unknown) => {
            refused = error;
          });
        }),
      ),
    );
    const engine = await engineOf([agent], store);
    const { run } = await toTheEnd(engine, await begin(engine, 'late'));
    expect(refused).toMatchObject({ kind: 'run_not_open' });
    expect(await store.session(run.session_id ?? '')).toMatchObject({ state: null });
    expect(await store.figures(['late'])).toMatchObject([{ tokens: 1 }]);
  });

  it('does not keep the next run of the session from its turn', async () => {
    const gate = new Subject<string>();
    const refused: unknown[] = [];
    const agent = agentOf((_, context) =>
      gate.pipe(
        finalize(() => {
          for (const [, work] of works) work(context).catch((error: unknown) => refused.push(error));
        }),
      ),
    );
    const store = new MemoryStore();
    // No periodic check: the end of the first run alone begins the next one.
    const engine = await engineOf([agent, echo], store, { sweepInterval: 3_600_000, pollInterval: 3_600_000 });
    const session_id = newId();
    const enqueue = async (agent_name: string): Promise<string> => {
      const created = { agent_name, session_id, input: [{ parts: [{ content: 'go' }] }] };
      return (await engine.create(created, { if_busy: 'enqueue' })).run_id;
    };
    const first = await enqueue('late');
    while (!gate.observed) await new Promise(setImmediate);
    const next = await enqueue('echo');
    expect((await runOf(engine, next)).status).toBe('created');
    gate.next('done');
    gate.complete();
    expect((await toTheEnd(engine, first)).run.status).toBe('completed');
    expect(textOf((await toTheEnd(engine, next)).run)).toBe('called');
    expect(refused).toMatchObject(works.map(() => ({ kind: 'run_not_open' })));
    expect((await store.session(session_id))?.state ?? null).toBe(null);
  });

  it('writes nothing after a cancel', async () => {
    const store = new MemoryStore();
    const agent = agentOf((_, context) =>
      concat(of('begun'), NEVER).pipe(finalize(() => void context.session.setState(1).catch(() => {}))),
    );
    const engine = await engineOf([agent], store);
    const run_id = await begin(engine, 'late');
    while ((await eventsOf(engine, run_id)).length < 4) await new Promise(setImmediate);
    await engine.cancel(run_id);
    const { run } = await toTheEnd(engine, run_id);
    expect((await store.session(run.session_id ?? ''))?.state ?? null).toBe(null);
  });
});

describe('the signal', () => {
  it.each(ways)('fires when the run %s', async (_, output, end) => {
    let signal: AbortSignal | undefined;
    const agent = agentOf((_, context) => {
      signal = context.signal;
      return output();
    });
    const engine = await engineOf([agent]);
    const run_id = await begin(engine, 'late');
    while (signal === undefined) await new Promise(setImmediate);
    await end(engine, run_id);
    await toTheEnd(engine, run_id);
    expect(signal.aborted).toBe(true);
  });

  it('of a call fires when the call ends, and leaves no listener when the call is refused', async () => {
    let added = 0;
    const agent = agentOf((_, context) => {
      const { signal } = context;
      const add = signal.addEventListener;
      signal.addEventListener = (...args: Parameters<typeof add>) => {
        added += 1;
        add.apply(signal, args);
      };
      const refused = defer(() => context.call('no-agent', 'x'));
      return concat(
        ...Array.from({ length: 20 }, () =>
          defer(async () => firstValueFrom(refused).catch(() => undefined)).pipe(ignoreElements()),
        ),
        timer(0).pipe(ignoreElements()),
        of('done'),
      );
    });
    const { run } = await whole([agent]);
    expect(run.status).toBe('completed');
    expect(added).toBe(0);
  });
});
