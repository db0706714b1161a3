import { setImmediate as turn } from 'node:timers/promises';
import { concat, firstValueFrom, ignoreElements, map, NEVER, type Observable, of, range, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  type AgentContext,
  type AgentFunction,
  type AgentOutput,
  type AgentResult,
  defineAgent,
} from '../../src/core/agent.ts';
import { fold } from '../../src/core/fold.ts';
import type { Store } from '../../src/core/ports/store.ts';
import type { Limits } from '../../src/engine/limits.ts';
import type { Event } from '../../src/schema/event.ts';
import type { Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { engineOf } from '../support/engine.ts';
import { begin, begun, type Ended, eventsOf, runOf, toTheEnd, whole } from '../support/lives.ts';
import { processorTime } from '../support/processor-time.ts';
import { textOf as text } from '../support/run-output.ts';

const agentOf = (run: AgentFunction, durable = true) =>
  defineAgent({ name: 'much', description: 'Much.' }, run, { durable });

describe('the limits of a run', () => {
  const repeat = (work: (context: AgentContext) => Promise<unknown>): AgentFunction => {
    return async (_, context) => {
      for (;;) await work(context);
    };
  };
  it.each<[string, AgentFunction]>([
    ['values of steps', (_, context) => context.step('many', () => range(0, 1_000)).pipe(ignoreElements())],
    [
      'await requests',
      repeat(
        (context) =>
          new Promise<void>((resolve, reject) => {
            context.await('x'.repeat(50)).subscribe({ error: reject }).unsubscribe();
            setImmediate(resolve);
          }),
      ),
    ],
    ['states', repeat((context) => context.session.setState({ text: 'x'.repeat(50) }))],
    [
      'error messages of steps',
      repeat((context) =>
        firstValueFrom(context.step('bad', () => Promise.reject(new Error('x'.repeat(50))))).catch((error: Error) => {
          if (error.message !== 'x'.repeat(50)) throw error;
        }),
      ),
    ],
  ])('count %s', async (_, run) => {
    for (const limits of [{ events: 100 }, { chars: 5_000 }]) {
      const ended = await whole([agentOf(run)], undefined, limits);
      expect(ended.run.error?.message).toContain('passed the limit of');
    }
  });

  it('count the tokens that an agent reports', async () => {
    const run: AgentFunction = (_, context) => {
      context.usage({ tokens: 8 });
      return range(0, 5).pipe(
        map((n) => {
          context.usage({ tokens: 1 });
          return `t${n}`;
        }),
      );
    };
    for (const durable of [true, false]) {
      const ended = await whole([agentOf(run, durable)], undefined, { tokens: 10 });
      expect(ended.run.error?.message).toBe(
        'The run has used 11 tokens; 10 is the limit of this server (--limit tokens).',
      );
      expect((await whole([agentOf(run, durable)], undefined, { tokens: 13 })).run.usage).toEqual({ tokens: 13 });
      const atOnce = await whole([agentOf(run, durable)], undefined, { tokens: 5 });
      expect(atOnce.run.status).toBe('failed');
    }
  });

  it('let a sum of tokens grow no further than JSON can have it', async () => {
    const run: AgentFunction = (_, context) => {
      for (const _time of [1, 2]) context.usage({ input_tokens: 1e308, output_tokens: 1e308 });
      return of('done');
    };
    const most = Number.MAX_SAFE_INTEGER;
    expect((await whole([agentOf(run)])).run.usage).toEqual({ tokens: most, input_tokens: most, output_tokens: most });
  });

  it.each([
    ['the number Infinity', Number.POSITIVE_INFINITY],
    ['the number NaN', Number.NaN],
    ['the number -1', -1],
    ['the string 5', '5' as never],
  ])('take no tokens that are %s', async (got, tokens) => {
    const run: AgentFunction = (_, context) => {
      context.usage({ tokens });
      return of('done');
    };
    const { error } = (await whole([agentOf(run)])).run;
    expect(error?.message).toContain(`usage: tokens has to be a finite number of 0 or more, got ${got}`);
  });

  it('include replies', async () => {
    const run = repeat((context) => firstValueFrom(context.await('?')));
    for (const durable of [true, false]) {
      const ended = await whole([agentOf(run, durable)], () => 'y'.repeat(20_000), { chars: 200_000 });
      expect(ended.run.error?.message).toContain('passed the limit of 200000 characters');
      expect(ended.events.length).toBeLessThan(100);
    }
  });

  it('do not apply where they are zero', async () => {
    const limits = {
      events: 0,
      chars: 0,
      backlog: 0,
      runTimeout: 0,
      idleTimeout: 0,
      passivateAfter: 0,
      sweepInterval: 1,
    };
    const agent = agentOf(async function* (_, context): AsyncGenerator<AgentOutput> {
      for (let n = 0; n < 50; n += 1) yield 'x';
      yield await new Promise<string>((resolve) => {
        context.await('?').subscribe({ next: () => resolve('end'), error: () => resolve('left') });
      });
    });
    const engine = await engineOf([agent], new MemoryStore(), limits);
    const run_id = await begun(engine, 'much');
    // Several periodic checks, none of which may release it from memory.
    await new Promise((resolve) => setTimeout(resolve, 20));
    await engine.resume(run_id, { type: 'message', message: { parts: [] } });
    expect(text((await toTheEnd(engine, run_id)).run)).toBe(`${'x'.repeat(50)}end`);
  });
});

describe('an iterable that never waits', () => {
  /** Processor time of a turn of the loop while the run was at work, in milliseconds: the median. */
  async function turnTime(run: AgentFunction, durable: boolean): Promise<number> {
    const engine = await startEngine([agentOf(run, durable)], new MemoryStore());
    const times: number[] = [];
    const run_id = await begin(engine, 'much');
    while (times.length < 9) {
      const before = processorTime();
      await turn();
      times.push(processorTime() - before);
    }
    await engine.cancel(run_id).catch(() => undefined);
    await toTheEnd(engine, run_id);
    await engine.stop();
    return times.sort((a, b) => a - b)[4] ?? 0;
  }

  const forever = function* (value: unknown): Generator<AgentOutput> {
    for (;;) yield value as AgentOutput;
  };
  const foreverAsync = async function* (value: unknown): AsyncGenerator<AgentOutput> {
    for (;;) yield value as AgentOutput;
  };
  const cases: [string, AgentFunction, boolean][] = [
    ['yields undefined', () => forever(undefined), false],
    ['yields undefined, asynchronously', () => foreverAsync(undefined), false],
    ['yields tokens', () => forever('x'), false],
    ['yields tokens, asynchronously', () => foreverAsync('x'), false],
    ['yields values of a step', (_, context) => context.step('s', () => forever('x')), true],
    [
      'yields undefined in a step, asynchronously',
      (_, context) => context.step('s', () => foreverAsync(undefined)),
      true,
    ],
  ];
  it.each(cases)('lets the event loop turn where it %s', async (_, run, durable) => {
    // A slice is 12 ms; the rest is for the commit and other load. Without slices the turn would never end.
    expect(await turnTime(run, durable)).toBeLessThan(60);
  });

  function* states(context: AgentContext, more: () => boolean): Generator<AgentOutput> {
    for (; more(); yield undefined as never) void context.session.setState('x'.repeat(100));
  }
  /** Each does its work while `more` allows it, and awaits nothing. `most` of it may wait. */
  const waiting: [
    string,
    (context: AgentContext, more: () => boolean) => AgentResult,
    most: number,
    durable: boolean,
  ][] = [
    [
      'values of a step',
      (context, more) =>
        context
          .step('s', function* () {
            while (more()) yield 'x'.repeat(100);
          })
          .pipe(ignoreElements()),
      1_000,
      true,
    ],
    [
      'errors of steps',
      function* (context, more) {
        const bad = (): Observable<never> => throwError(() => new Error('x'.repeat(1_000)));
        for (; more(); yield undefined as never) context.step('s', bad).subscribe({ error: () => {} });
      },
      100,
      true,
    ],
    ['states', states, 1_000, true],
    ['states, without being durable,', states, 1_000, false],
  ];
  it.each(waiting)('is paused while its %s wait for the store', async (_, work, most, durable) => {
    let done = 0;
    let open: () => void = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    let held = false;
    class Slow extends MemoryStore {
      override async commit(...args: Parameters<Store['commit']>) {
        if (held) await opened;
        return super.commit(...args);
      }
    }
    const more = (): boolean => done < 2_000 && ++done > 0;
    const agent = agentOf((_, context) => work(context, more), durable);
    const engine = await engineOf([agent], new Slow(), { backlog: 10_000 });
    const run_id = await begin(engine, 'much');
    held = true;
    for (let turns = 0; turns < 50; turns += 1) await turn();
    expect(done).toBeGreaterThan(0);
    expect(done).toBeLessThan(most);
    open();
    expect((await toTheEnd(engine, run_id)).run.status).toBe('completed');
    expect(done).toBe(2_000);
  });
});

describe.each<[string, Partial<Limits>]>([
  ['events', { events: 60 }],
  ['characters', { chars: 10_000 }],
])('the limit of %s of a re-entered run', (_, limits) => {
  const says = (count: number): Observable<string> => range(0, count).pipe(map((n) => `${n} ${'x'.repeat(50)}`));

  /** A run that has said so much in a life without limits, and then waits. Its second life says `more` after that. */
  async function secondLife(said: number, more: number): Promise<Ended & { readonly kept: number }> {
    const store = new MemoryStore();
    const first = await startEngine([agentOf(() => concat(says(said), NEVER))], store);
    const run_id = await begin(first, 'much');
    while ((await eventsOf(first, run_id)).length < said + 3) await turn();
    await first.stop();
    const kept = (await store.run(run_id))?.last ?? 0;
    const second = await startEngine([agentOf(() => concat(says(said), says(more)))], store, limits);
    const ended = await toTheEnd(second, run_id);
    await second.stop();
    return { ...ended, kept };
  }

  it('counts the output that it repeats, so that it fails as in its first life', async () => {
    const { run: expected } = await whole([agentOf(() => says(100))], undefined, limits);
    expect(expected.error?.message).toContain('passed the limit of');
    const { run, events, kept } = await secondLife(100, 0);
    expect(run).toMatchObject({ status: 'failed', error: expected.error });
    // What the first life has written stays.
    expect(events.slice(0, kept).filter(({ type }) => type === 'message.part')).toHaveLength(100);
  });

  it('counts the output of all its lives together', async () => {
    const { run: expected } = await whole([agentOf(() => says(80))], undefined, limits);
    expect((await secondLife(40, 40)).run).toMatchObject({ status: 'failed', error: expected.error });
    // Either life alone stays below the limit.
    expect((await secondLife(40, 1)).run.status).toBe('completed');
  });
});

describe('the log of a run that asks often', () => {
  it('grows with the run’s output, and not with the number of its questions', async () => {
    const agent = agentOf(async function* (_, context): AsyncGenerator<AgentOutput> {
      for (let n = 0; n < 100; n += 1) {
        yield 'x'.repeat(1_000);
        await new Promise((resolve) => void context.await('?').subscribe({ complete: () => resolve(undefined) }));
      }
    });
    const { run, events, store } = await whole([agent], () => 'y');
    expect(text(run)).toHaveLength(100_000);
    const chars = store.commits
      .flat()
      .flatMap(({ lines }) => lines)
      .reduce((sum, line) => sum + line.length, 0);
    // Each text is in a part, in the event that completes its message, and in the final event.
    expect(chars).toBeLessThan(600_000);
    const folded = structuredClone(events).reduce<Run | undefined>(
      (state, event: Event) => (state === undefined ? ('run' in event ? event.run : undefined) : fold(state, event)),
      undefined,
    );
    expect(folded).toEqual(run);
  });

  it('has the output so far while the run awaits', async () => {
    const asks = agentOf(async function* (_, context): AsyncGenerator<AgentOutput> {
      yield 'so far';
      await new Promise((resolve) => void context.await('?').subscribe({ complete: () => resolve(undefined) }));
    });
    const engine = await engineOf([asks]);
    const run_id = await begun(engine, 'much');
    expect(text(await runOf(engine, run_id))).toBe('so far');
    const asked = (await eventsOf(engine, run_id)).find(({ type }) => type === 'run.awaiting');
    expect(asked).toMatchObject({ run: { output: [] } });
  });

  it('keeps only the last of several states that are stored in one turn', async () => {
    const store = new RecordingStore();
    const agent = agentOf(async (_, context) => {
      await Promise.all([1, 2, 3].map((n) => context.session.setState(n)));
      return 'stored';
    }, false);
    const engine = await engineOf([agent], store);
    await toTheEnd(engine, await begin(engine, 'much'));
    const states = store.commits
      .flat()
      .flatMap(({ resources }) => resources ?? [])
      .filter(({ run_id }) => run_id === null);
    expect(states.map(({ body }) => body)).toEqual(['3']);
  });
});
