import {
  concat,
  defer,
  finalize,
  ignoreElements,
  map,
  merge,
  NEVER,
  of,
  ReplaySubject,
  switchMap,
  take,
  timer,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type AgentContext, type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import type { Store } from '../../src/core/ports/store.ts';
import type { Message } from '../../src/schema/message.ts';
import type { Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { engineOf } from '../support/engine.ts';
import { again, begin, eventsOf, runOf, toTheEnd, whole } from '../support/lives.ts';
import { textOf as text } from '../support/run-output.ts';
import { turn } from '../support/turn.ts';

const agentOf = (run: AgentFunction, name = 'again') =>
  defineAgent({ name, description: 'Lives again.' }, run, { durable: true });
const quick = { sweepInterval: 2, idleTimeout: 30 };

/** A first life that ends without its last commit; the second is another agent's. */
async function secondLife(first: AgentFunction, second: AgentFunction, limits: object = quick): Promise<Run> {
  const { store } = await whole([agentOf(first)]);
  const life = await again([agentOf(second)], store, store.commits.length - 1, undefined, limits);
  if (life === undefined) throw new Error('nothing was kept');
  return life.run;
}

const pause = (_: Message[], context: AgentContext) => context.step('pause', () => timer(5).pipe(map(() => 'end')));

describe('a re-entered run that does not get on', () => {
  const first: AgentFunction = (input, context) =>
    concat(
      context.step('fetch', async () => 'fetched ').pipe(map((value) => value)),
      defer(() => pause(input, context)),
    );

  it('is parked if a step has another name, and names the step that it waits for', async () => {
    const run = await secondLife(first, (_, context) => context.step('load', async () => 'fetched '));
    expect(run.parked?.reason).toMatch(
      /did not repeat its earlier output: at the journal, expected step fetch#0 to begin/,
    );
    expect(text(run)).toBe('fetched ');
  });

  it('is parked if its agent emits nothing', async () => {
    const run = await secondLife(first, () => NEVER);
    expect(run.parked?.reason).toMatch(/expected step fetch#0 to begin, got nothing/);
  });

  it('is parked if its agent emits something else, and names both outputs', async () => {
    const run = await secondLife(
      (input, context) =>
        concat(
          of('one '),
          defer(() => pause(input, context)),
        ),
      () => concat(of('two '), NEVER),
    );
    expect(run.parked?.reason).toMatch(/at event 4, expected .*one .*, got .*two /);
  });

  it('fails with run_timeout if it works for too long', async () => {
    const run = await secondLife(first, () => NEVER, { sweepInterval: 2, idleTimeout: 0, runTimeout: 30 });
    expect(run.error?.message).toContain('at work for more than');
  });

  it('is parked, and adds no messages to the session, when it diverges at its completion', async () => {
    const { store } = await whole([agentOf(first)]);
    const disk = await store.after(store.commits.length - 1);
    const engine = await engineOf([agentOf(() => of())], disk);
    const [row] = await disk.runs({}, undefined, 1);
    const { run } = await toTheEnd(engine, row?.run_id ?? '');
    expect(run.parked?.reason).toContain('did not repeat its earlier output');
    expect((await disk.session(run.session_id ?? ''))?.history ?? []).toEqual([]);
  });
});

describe('parallel calls of agents', () => {
  it('may interleave their output differently, while each keeps its own order', async () => {
    let swapped = false;
    let firstDone = new ReplaySubject<void>(1);
    const inTurn =
      (text: string, isFirst: boolean): AgentFunction =>
      () => {
        const tokens = timer(1).pipe(switchMap(() => of(`${text}1 `, `${text}2 `)));
        return isFirst
          ? tokens.pipe(finalize(() => firstDone.next()))
          : firstDone.pipe(
              take(1),
              switchMap(() => tokens),
            );
      };
    const agents = [
      agentOf((input, context) =>
        concat(
          merge(context.call('a', 'x'), context.call('b', 'x')),
          defer(() => pause(input, context)),
        ),
      ),
      agentOf((input, context) => inTurn('a', !swapped)(input, context), 'a'),
      agentOf((input, context) => inTurn('b', swapped)(input, context), 'b'),
    ];
    const first = await whole(agents);
    expect(text(first.run)).toBe('a1 a2 b1 b2 end');
    swapped = true;
    firstDone = new ReplaySubject(1);
    const second = await again(agents, first.store, first.store.commits.length - 1);
    expect([second?.run.status, text(second?.run ?? first.run)]).toEqual(['completed', 'a1 a2 b1 b2 end']);
  });

  it('may not change the output of one of them', async () => {
    let life = 0;
    const agents = [
      agentOf((input, context) =>
        concat(
          merge(context.call('a', 'x'), context.call('b', 'x')),
          defer(() => pause(input, context)),
        ),
      ),
      agentOf(() => of('a '), 'a'),
      agentOf(() => {
        life += 1;
        return of(`life ${life} `);
      }, 'b'),
    ];
    const first = await whole(agents);
    const second = await again(agents, first.store, first.store.commits.length - 1, undefined, quick);
    expect(second?.run.parked?.reason).toMatch(/expected .*life 1 .*, got .*life 2 /);
  });
});

describe('a re-entered run', () => {
  it('is not failed while its steps make progress, although it emits nothing', async () => {
    const store = new RecordingStore();
    let lives = 0;
    let reached = 0;
    let disk: Store = store;
    // Each execution does one step, and is cut off in the next one.
    const agent = agentOf((_, context) => {
      lives += 1;
      const mine = lives;
      return concat(
        ...Array.from({ length: 6 }, (_, n) =>
          context
            .step('work', () => {
              if (n > mine - 1) return NEVER;
              reached = n + 1;
              return of(n);
            })
            .pipe(ignoreElements()),
        ),
        of('done'),
      );
    });
    const limits = { attempts: 2 };
    const first = await startEngine([agent], disk, limits);
    const run_id = await begin(first, 'again');
    for (let life = 1; life <= 5; life += 1) {
      while (reached < life) await turn();
      // Until its value is durable.
      for (let turns = 0; turns < 5; turns += 1) await turn();
      const copy = new RecordingStore();
      for (const writes of (disk as RecordingStore).commits) await copy.commit(writes);
      disk = copy;
      const engine = await startEngine([agent], disk, limits);
      if (life === 5) {
        const { run } = await toTheEnd(engine, run_id);
        expect([run.status, text(run)]).toEqual(['completed', 'done']);
      }
    }
  });

  it('keeps the output of its log when it is cancelled during the replay', async () => {
    const { store, run } = await whole([
      agentOf((input, context) =>
        concat(
          of('before '),
          context.step('s', async () => 'value '),
          defer(() => pause(input, context)),
        ),
      ),
    ]);
    const disk = await store.after(store.commits.length - 1);
    const engine = await engineOf([agentOf(() => NEVER)], disk, { cancelGrace: 1, sweepInterval: 1 });
    const answered: Run = JSON.parse(await engine.cancel(run.run_id));
    expect([answered.status, text(answered)]).toEqual(['cancelling', 'before value ']);
    const ended = await toTheEnd(engine, run.run_id);
    expect([ended.run.status, text(ended.run)]).toEqual(['cancelled', 'before value ']);
  });

  it('counts the time that its earlier executions worked', async () => {
    const agent = agentOf((input, context) =>
      concat(
        context.step('long', () => timer(60).pipe(map(() => 'a '))),
        defer(() => pause(input, context)),
      ),
    );
    const first = await whole([agent]);
    const disk = await first.store.after(first.store.commits.length - 1);
    const engine = await engineOf([agent], disk);
    const [row] = await disk.runs({}, undefined, 1);
    await toTheEnd(engine, row?.run_id ?? '');
    const [figures] = await disk.figures(['again']);
    expect(figures?.seconds).toBeGreaterThan(0.055);
  });

  it('reads its session’s history as it was, with one call of the store', async () => {
    let questions = 0;
    class Counting extends MemoryStore {
      override resources(ids: readonly string[]) {
        // One id is that of the run's own descriptor.
        if (ids.length > 1) questions += 1;
        return super.resources(ids);
      }
    }
    const session_id = '01a1fd1f-f84b-7740-b3c6-734c49e187db';
    const store = new Counting();
    const says = defineAgent({ name: 'says', description: 'Says.' }, () => of('x'.repeat(1000)));
    let held = true;
    const agent = agentOf((_, context) =>
      concat(
        context.session.history.pipe(map(({ parts }) => `${parts[0]?.content?.length} `)),
        defer(() => (held ? NEVER : of('end'))),
      ),
    );
    const first = await startEngine([says, agent], store);
    const create = (agent_name: string) =>
      first.create({ agent_name, session_id, input: [{ parts: [{ content: 'go' }] }] });
    for (let run = 0; run < 5; run += 1) await toTheEnd(first, (await create('says')).run_id);
    const { run_id } = await create('again');
    while ((await eventsOf(first, run_id)).length < 13) await turn();
    expect(questions).toBe(1);
    expect((await store.journal(run_id)).join().length).toBeLessThan(500);
    await toTheEnd(first, (await create('says')).run_id);
    const expected = text(await runOf(first, run_id));
    held = false;
    const second = await startEngine([says, agent], store);
    const { run } = await toTheEnd(second, run_id);
    expect(text(run)).toBe(`${expected}end`);
    expect(questions).toBe(2);
  });
});
