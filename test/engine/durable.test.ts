import { concat, defer, first, map, merge, type Observable, of, Subject, take, tap, timer, toArray } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Agent, type AgentContext, AgentError, createServer, defineAgent, type Run } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { openStore } from '../../src/stores/open.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { durable, echo } from '../support/agents.ts';
import { deferred } from '../support/deferred.ts';
import { Hold } from '../support/hold.ts';
import {
  apiOnly,
  ask,
  eventsOf,
  finished,
  frames,
  parked,
  type Served,
  serveApi,
  textOf,
  types,
} from '../support/serve.ts';
import { turn, turns } from '../support/turn.ts';

const reply = (content: string, more: object = {}) => ({
  mode: 'sync',
  await_resume: { type: 'message', message: { parts: [{ content, ...more }] } },
});
const sse = { accept: 'text/event-stream' };

/** Serves until the run is settled, then restarts with the commits that a disk would have. */
async function crashed(
  agent: Agent,
  text = 'go',
  lost = 0,
  store = new RecordingStore(),
): Promise<{ served: Served; run: Run; lines: string[] }> {
  const app = await createServer({
    agents: [agent],
    store,
    ...apiOnly,
    limits: { shutdownGrace: 0 },
  });
  const payload = ask(agent.manifest.name, text);
  const run: Run = (await app.inject({ method: 'POST', url: '/runs', payload })).json();
  const kept = await store.after(store.commits.length - lost);
  await app.close();
  const lines = (await kept.events(run.run_id, 0, 1e6)).flatMap(({ lines }) => [...lines]);
  return { served: await serveApi([agent], { store: kept, limits: { sweepInterval: 5 } }), run, lines };
}

/** Emits a value when the store has committed an event or journal entry with a text: it comes in a later commit. */
const after = (store: RecordingStore, text: string, value: string): Observable<string> =>
  timer(0, 5).pipe(
    first(() =>
      store.commits.flat().some(({ lines, journal = [] }) => [...lines, ...journal].some((one) => one.includes(text))),
    ),
    map(() => value),
  );

/** A payment in a step, and a store in which the commit that has to come before it waits. */
function heldPayment() {
  const store = new MemoryStore();
  const commit = store.commit.bind(store);
  const commits = new Hold();
  vi.spyOn(store, 'commit').mockImplementation(async (writes) => {
    if (writes.some(({ journal = [] }) => journal.join().includes('about to pay'))) await commits.come();
    return commit(writes);
  });
  const did: string[] = [];
  const pay = ({ step, committed }: AgentContext) =>
    step('pay', async function* () {
      yield 'about to pay';
      await committed();
      did.push('paid');
    });
  return { store, commits, did, pay };
}

describe('a step', () => {
  it('may wait until its values are durable, before work that must not be repeated', async () => {
    const store = new RecordingStore();
    const journaled = (): boolean => store.commits.flat().some(({ journal = [] }) => journal.join().includes('"sure"'));
    const seen: boolean[] = [];
    const agent = durable('sure', (_, context) => {
      const work = new Subject<string>();
      const begin = async (): Promise<void> => {
        seen.push(journaled());
        await context.committed();
        seen.push(journaled());
        work.complete();
      };
      return context.step('work', () => concat(of('sure'), work)).pipe(tap(() => void begin()));
    });
    const { run } = await crashed(agent, 'go', 0, store);
    expect(run.status).toBe('completed');
    expect(seen).toEqual([false, true]);
  });

  it('may wait until the value that it has just emitted is durable', async () => {
    const store = new MemoryStore();
    let journal: readonly string[] = [];
    const agent = durable('pays', (_, { run_id, step, committed }) =>
      step('pay', async function* () {
        yield 'about to pay';
        await committed();
        journal = await store.journal(run_id);
        yield 'paid';
      }),
    );
    const served = await serveApi([agent], { store });
    const run: Run = await (await served.post('/runs', ask('pays'))).json();
    expect(textOf(run)).toBe('about to paypaid');
    expect(journal.join()).toContain('about to pay');
  });

  it('never goes on after `committed`, where its run has left before', async () => {
    const { promise: left, resolve: leave } = deferred();
    const pay = async (value: Subject<string>, { committed }: AgentContext): Promise<string> => {
      await left;
      value.next('about to pay');
      return committed().then(
        () => 'paid',
        () => 'cleaned up',
      );
    };
    const outcomes: Promise<string>[] = [];
    const agent = durable('pays', (_, context) =>
      context.step('pay', () => {
        const value = new Subject<string>();
        outcomes.push(pay(value, context));
        return value;
      }),
    );
    const app = await createServer({ agents: [agent], ...apiOnly, limits: { shutdownGrace: 0 } });
    await app.inject({ method: 'POST', url: '/runs', payload: ask('pays', 'go', { mode: 'async' }) });
    while (outcomes.length === 0) await turn();
    await app.close();
    leave();
    for (let turns = 0; turns < 20; turns += 1) await turn();
    expect(await Promise.race([...outcomes, 'waits'])).toBe('waits');
  });

  it('never goes on after `committed`, where its run leaves before the store has answered', async () => {
    const { store, commits, did, pay } = heldPayment();
    const agent = durable('pays', (_, context) => pay(context));
    const app = await createServer({ agents: [agent], store, ...apiOnly, limits: { shutdownGrace: 0 } });
    await app.inject({ method: 'POST', url: '/runs', payload: ask('pays', 'go', { mode: 'async' }) });
    await commits.held();
    const closed = app.close();
    await turns(5);
    commits.letGo();
    await closed;
    await turns(20);
    expect(did).toEqual([]);
  });

  it.each(['failed', 'cancelled'])(
    'never goes on after `committed`, where its run has %s before the store has answered',
    async (status) => {
      const { store, commits, did, pay } = heldPayment();
      const broken = deferred();
      const agent = durable('pays', (_, context) =>
        merge(
          pay(context),
          defer(() => broken.promise.then(() => Promise.reject(new Error('The disk is full.')))),
        ),
      );
      const served = await serveApi([agent], { store });
      const run: Run = await (await served.post('/runs', ask('pays', 'go', { mode: 'async' }))).json();
      await commits.held();
      const ended = status === 'failed' ? broken.resolve() : served.post(`/runs/${run.run_id}/cancel`, {});
      await turns(5);
      commits.letGo();
      await ended;
      expect(await finished(served, run.run_id)).toMatchObject({ status });
      await turns(20);
      expect(did).toEqual([]);
    },
  );

  it('does its work once, and emits the same values after a crash', async () => {
    let works = 0;
    const agent = durable('worker', (_, context) =>
      concat(
        context.step('one', async () => ({ content: `work ${++works}. `, content_type: 'text/html' })),
        context.await('go on?').pipe(map(() => 'on.')),
      ),
    );
    const { served, run } = await crashed(agent);
    const done: Run = await (await served.post(`/runs/${run.run_id}`, reply('yes'))).json();
    expect(done).toMatchObject({ status: 'completed' });
    expect(textOf(done)).toBe('work 1. on.');
    expect(works).toBe(1);
  });

  it('emits values as they come, and those of the journal at once', async () => {
    let works = 0;
    const agent = durable('streamer', (_, context) =>
      concat(
        context.step('stream', () => {
          works += 1;
          return timer(0, 1).pipe(
            take(5),
            map((n) => `${n} `),
          );
        }),
        context.await('?').pipe(map(() => 'end')),
      ),
    );
    const { served, run } = await crashed(agent);
    expect(textOf(await (await served.post(`/runs/${run.run_id}`, reply('yes'))).json())).toBe('0 1 2 3 4 end');
    expect(works).toBe(1);
  });

  it('that was cut off continues after its journaled values, with `again`', async () => {
    const heard: unknown[] = [];
    const store = new RecordingStore();
    const agent = durable('speaker', (_, context) =>
      context.step(
        'speech',
        () => concat(of('a', 'b'), after(store, '"b"', 'c')),
        (before) => {
          heard.push([...before]);
          return of('d');
        },
      ),
    );
    // The last commit, with the value that came later, is lost.
    const { served, run } = await crashed(agent, 'go', 1, store);
    expect(textOf(await finished(served, run.run_id))).toBe('abd');
    expect(heard).toEqual([['a', 'b']]);
  });

  it('that was cut off repeats its work without `again`, and passes on what it emits then', async () => {
    let life = 0;
    const [store, others] = [new RecordingStore(), new RecordingStore()];
    const same = durable('same', (_, context) =>
      context.step('s', () => concat(of('a', 'b'), after(store, '"b"', 'c'))),
    );
    const first = await crashed(same, 'go', 1, store);
    expect(textOf(await finished(first.served, first.run.run_id))).toBe('abc');
    const other = durable('other', (_, context) =>
      context.step('s', () => concat(of(`life ${++life}`), after(others, 'life 1', 'c'))),
    );
    const second = await crashed(other, 'go', 1, others);
    const run = await finished(second.served, second.run.run_id);
    expect(run.output.map((message) => message.parts[0]?.content)).toEqual(['life 1', 'life 2c']);
  });

  it('that failed fails again with the same error, and does not repeat its work', async () => {
    let works = 0;
    const agent = durable('failing', (_, context) =>
      defer(() =>
        context.step('bad', () => {
          works += 1;
          throw new AgentError('quota', 'used up', { left: 0 });
        }),
      ).pipe((source) =>
        concat(
          new Promise<string>((resolve) =>
            source.subscribe({ error: ({ code, data }) => resolve(`${code} ${data.left}; `) }),
          ),
          context.await('?').pipe(map(() => 'on')),
        ),
      ),
    );
    const { served, run } = await crashed(agent);
    expect(textOf(await (await served.post(`/runs/${run.run_id}`, reply('yes'))).json())).toBe('quota 0; on');
    expect(works).toBe(1);
  });

  it('does its work in a run that is not durable as well', async () => {
    const agent = defineAgent({ name: 'plain', description: 'a' }, (_, context) =>
      context.step('s', () => of('a', 'b')),
    );
    const served = await serveApi([agent]);
    expect(textOf(await (await served.post('/runs', ask('plain'))).json())).toBe('ab');
  });
});

describe('a durable run', () => {
  it('reads its session in a replay as it was, although it has changed since', async () => {
    const agent = durable('historian', (_, context) =>
      concat(
        context.session.history.pipe(
          toArray(),
          map((all) => `${all.length} messages. `),
        ),
        context.await('?').pipe(map(() => 'end')),
      ),
    );
    const store = new RecordingStore();
    const before = await serveApi([agent, echo], { store });
    const first: Run = await (await before.post('/runs', ask('echo'))).json();
    const run: Run = await (
      await before.post('/runs', ask('historian', 'go', { session_id: first.session_id }))
    ).json();
    await before.post('/runs', ask('echo', 'more', { session_id: first.session_id }));
    const served = await serveApi([agent, echo], { store: await store.after(store.commits.length) });
    const done: Run = await (await served.post(`/runs/${run.run_id}`, reply('yes'))).json();
    expect(done).toMatchObject({ status: 'completed' });
    expect(textOf(done)).toBe('2 messages. end');
  });

  it('is parked if it emits something else in a replay, and names the position', async () => {
    let life = 0;
    const store = new RecordingStore();
    const agent = durable('fickle', () => concat(of(`life ${++life}`), after(store, 'life 1', 'x')));
    const { served, run, lines } = await crashed(agent, 'go', 1, store);
    const left = await parked(served, run.run_id);
    expect(left.parked?.reason).toMatch(/at event 4, expected .*life 1.*, got .*life 2/);
    expect((await eventsOf(served, run.run_id)).map((event) => JSON.stringify(event))).toEqual(lines);
    expect(textOf(left)).toBe('life 1');
  });

  it('is parked if it ends sooner in a replay', async () => {
    let life = 0;
    const store = new RecordingStore();
    const agent = durable('brief', () => (++life === 1 ? concat(of('a'), after(store, '"a"', 'b')) : []));
    const { served, run } = await crashed(agent, 'go', 1, store);
    expect((await parked(served, run.run_id)).parked?.reason).toContain('got its end');
  });

  it('refuses writes of an execution that is fenced', async () => {
    const store = await openStore('memory:');
    const gate = new Subject<string>();
    const agent = durable('slow', () => gate.pipe(take(1)));
    const old = await serveApi([agent], { store });
    const { run_id } = await (await old.post('/runs', ask('slow', 'go', { mode: 'async' }))).json();
    const next = await serveApi([agent], { store });
    const ended = finished(next, run_id);
    // Both executions emit at once, the old one first.
    gate.next('late');
    expect(await ended).toMatchObject({ status: 'completed' });
    const all = types(await eventsOf(next, run_id));
    expect(all.filter((type) => type === 'run.completed')).toHaveLength(1);
    expect(all.filter((type) => type === 'message.part')).toHaveLength(1);
  });
});

describe('a run that awaits', () => {
  const asks = durable('asks', (_, context) =>
    concat(of('before. '), context.await('well?').pipe(map(({ message }) => `You said ${message.parts[0]?.content}.`))),
  );

  it('leaves memory after a while, and returns with the reply; its readers miss nothing', async () => {
    let gone: () => void = () => {};
    const left = new Promise<void>((resolve) => {
      gone = resolve;
    });
    const agent = durable('asks', (input, context) => {
      context.signal.addEventListener('abort', gone);
      return asks.run(input, context);
    });
    const served = await serveApi([agent], { limits: { passivateAfter: 1, sweepInterval: 2 } });
    const { run_id } = await (await served.post('/runs', ask('asks'))).json();
    const tail = frames(await served.get(`/runs/${run_id}/events`, sse));
    await left;
    const late = frames(await served.get(`/runs/${run_id}/events?after=3`, sse));
    expect((await (await served.get(`/runs/${run_id}`)).json()).status).toBe('awaiting');
    const done: Run = await (await served.post(`/runs/${run_id}`, reply('yes'))).json();
    expect(textOf(done)).toBe('before. You said yes.');
    const events = await eventsOf(served, run_id);
    expect((await tail).map(({ event }) => event)).toEqual(events);
    expect((await late).map(({ event }) => event)).toEqual(events.slice(3));
  });

  it('accepts one of two replies at the same time when it is stored only, and answers the other with 409', async () => {
    const { served, run } = await crashed(asks);
    const answers = await Promise.all(['a', 'b', 'c'].map((text) => served.post(`/runs/${run.run_id}`, reply(text))));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });

  it('can be cancelled when it is stored only, and its readers get the event', async () => {
    const { served, run } = await crashed(asks);
    const tail = await served.get(`/runs/${run.run_id}/events`, sse);
    expect(await (await served.post(`/runs/${run.run_id}/cancel`)).json()).toMatchObject({ status: 'cancelling' });
    expect((await frames(tail)).at(-1)?.event).toMatchObject({ type: 'run.cancelled' });
    expect((await served.post(`/runs/${run.run_id}`, reply('yes'))).status).toBe(409);
  });

  it('streams exactly the events that follow when it is resumed from the store', async () => {
    const { served, run } = await crashed(asks);
    const seen = await frames(await served.post(`/runs/${run.run_id}`, { ...reply('yes'), mode: 'stream' }));
    expect(types(seen.map(({ event }) => event))).toEqual([
      'run.in-progress',
      'message.created',
      'message.part',
      'message.completed',
      'run.completed',
    ]);
    expect(seen[0]?.id).toBe(7);
  });

  it('accepts only a reply that fits its schema, and names the path of an error', async () => {
    const schema = { type: 'object', properties: { amount: { type: 'number', minimum: 1 } }, required: ['amount'] };
    const agent = durable('pays', (_, context) =>
      context.await('how much?', { schema }).pipe(map(({ message }) => `paid ${message.parts[0]?.content}`)),
    );
    const served = await serveApi([agent]);
    const run: Run = await (await served.post('/runs', ask('pays'))).json();
    expect(run.await_request?.schema).toEqual(schema);
    const json = { content_type: 'application/json' };
    const bad = await served.post(`/runs/${run.run_id}`, reply('{"amount":"x"}', json));
    expect([bad.status, (await bad.json()).message]).toEqual([
      422,
      'await_resume.message.parts[0].content/amount: must be number.',
    ]);
    const none = await served.post(`/runs/${run.run_id}`, reply('hello'));
    expect([none.status, (await none.json()).message]).toEqual([422, 'await_resume.message.parts: must be object.']);
    expect(textOf(await (await served.post(`/runs/${run.run_id}`, reply('{"amount":5}', json))).json())).toBe(
      'paid {"amount":5}',
    );
  });

  it.each([true, false])(
    'fails with await_timeout when no reply comes in time, in memory or in the store (durable: %s)',
    async (durable) => {
      const agent = defineAgent(
        { name: 'hurried', description: 'a' },
        (_, context) => context.await('?', { expiresIn: 30 }).pipe(map(() => 'ok')),
        { durable },
      );
      // The clock stands still until the run awaits: a busy machine may need longer to answer.
      vi.useFakeTimers({ toFake: ['Date'] });
      onTestFinished(() => void vi.useRealTimers());
      const served = await serveApi([agent], { limits: { sweepInterval: 2, passivateAfter: 1 } });
      const run: Run = await (await served.post('/runs', ask('hurried'))).json();
      expect(Date.parse(run.await_request?.expires_at ?? '')).toBe(Date.now() + 30);
      vi.advanceTimersByTime(31);
      expect((await finished(served, run.run_id)).error).toMatchObject({
        code: 'server_error',
        data: { reason: 'await_timeout' },
      });
    },
  );

  it('is in the list of awaiting runs', async () => {
    const served = await serveApi([asks, echo]);
    await served.post('/runs', ask('echo'));
    const { run_id } = await (await served.post('/runs', ask('asks'))).json();
    const { runs } = await (await served.get('/runs?status=awaiting')).json();
    expect(runs.map((run: Run) => run.run_id)).toEqual([run_id]);
    expect(runs[0].await_request.message.parts[0].content).toBe('well?');
  });
});
