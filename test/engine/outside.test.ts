import { randomUUID } from 'node:crypto';
import { concatMap, defer, finalize, from, map, merge, race } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type AgentContext, type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import { textOf as textOfMessage } from '../../src/core/parts.ts';
import type { RunRow } from '../../src/core/ports/run-store.ts';
import type { Limits } from '../../src/engine/limits.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { cutAll, cutEverywhere, Effects, RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { deferred } from '../support/deferred.ts';
import { engineOf } from '../support/engine.ts';
import { atRest, begin, begun, toTheEnd } from '../support/lives.ts';
import { textOf } from '../support/run-output.ts';
import { turn } from '../support/turn.ts';

const durable = (run: AgentFunction, name = 'works') =>
  defineAgent({ name, description: 'Works outside.' }, run, { durable: true });
const resting: Partial<Limits> = { passivateAfter: 1, sweepInterval: 1 };
const yes = { type: 'message' as const, message: { parts: [{ content: 'yes' }] } };
const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await holds())) await turn();
};
const waits = async (turns = 50): Promise<void> => {
  for (let n = 0; n < turns; n += 1) await turn();
};

describe('an effect that a crash repeats uses the same values', () => {
  const newKey = ({ step }: AgentContext) => step('key', async () => randomUUID());
  const cases: [string, AgentFunction, Effects][] = [
    (() => {
      const effects = new Effects();
      const run: AgentFunction = async (_, context) => {
        const key = await newKey(context);
        await context.step('charge', async () => effects.add('charge', key));
        return 'charged';
      };
      return ['of a step', run, effects];
    })(),
    (() => {
      const effects = new Effects();
      const run: AgentFunction = async (_, context) => {
        const keys = await Promise.all(['a', 'b', 'c'].map((name) => context.step(name, async () => randomUUID())));
        await Promise.all(keys.map((key, n) => context.step(`charge ${n}`, async () => effects.add(`${n}`, key))));
        return 'charged';
      };
      return ['of several steps', run, effects];
    })(),
    (() => {
      const effects = new Effects();
      const run: AgentFunction = async (_, context) => {
        const key = textOfMessage(await context.call('keys', 'a key'));
        await context.step('charge', async () => effects.add('charge', key));
        return 'charged';
      };
      return ['of an agent that was called', run, effects];
    })(),
    (() => {
      const effects = new Effects();
      const run: AgentFunction = (_, context) =>
        newKey(context).pipe(
          concatMap((key) => defer(() => context.call('charges', key))),
          map(() => 'charged'),
        );
      return ['which it is called with', run, effects];
    })(),
  ];

  it.each(cases)('%s', async (_, run, effects) => {
    const calls = {
      keys: durable((_, context) => newKey(context), 'keys'),
      charges: durable((input) => {
        effects.add('charge', textOfMessage(input.slice(-1)));
        return 'charged';
      }, 'charges'),
    };
    const { cuts } = await cutEverywhere(durable(run), 'go', { calls, effects });
    expect(cuts).toBeGreaterThan(2);
  });

  it('and `cutAll` finds one that does not', async () => {
    const effects = new Effects();
    const careless = durable(async (_, context) => {
      await context.step('charge', async () => effects.add('charge', randomUUID()));
      return 'charged';
    });
    const { faults } = await cutAll(careless, 'go', { effects });
    expect(faults).toContainEqual(expect.stringContaining('effect charge is repeated with'));
  });

  it('while values reach the agent before they are durable', async () => {
    const store = new RecordingStore();
    const seen: number[] = [];
    const agent = durable((_, { step }) =>
      step('model', () => ['a', 'b']).pipe(
        map((token) => {
          seen.push(store.commits.length);
          return token;
        }),
      ),
    );
    const engine = await startEngine([agent], store);
    await toTheEnd(engine, await begin(engine, 'works'));
    await engine.stop();
    expect(new Set(seen).size).toBe(1);
  });
});

/** Locks, asks, and unlocks whatever happens; `undone` is what it undoes. */
function locking(style: 'generator' | 'observable') {
  const undone: string[] = [];
  const run: AgentFunction =
    style === 'generator'
      ? async function* (_, context) {
          try {
            yield `booked after ${textOfMessage((await context.await('Book?')).message)}`;
          } catch {
            undone.push('refund');
          } finally {
            undone.push('unlock');
          }
        }
      : (_, context) =>
          context.await('Book?').pipe(
            map(({ message }) => `booked after ${textOfMessage(message)}`),
            finalize(() => undone.push('unlock')),
          );
  return { agent: durable(run), undone };
}

describe.each(['generator', 'observable'] as const)('a run that leaves its process (%s)', (style) => {
  it('undoes nothing, and does so once at its end', async () => {
    const { agent, undone } = locking(style);
    const store = new MemoryStore();
    const first = await engineOf([agent], store, resting);
    const run_id = await begin(first, 'works');
    await atRest(store, run_id);
    await first.resume(run_id, yes);
    const { run } = await toTheEnd(first, run_id);
    expect([run.status, textOf(run), undone]).toEqual(['completed', 'booked after yes', ['unlock']]);
  });

  it('undoes nothing when the server stops, or another node takes it over', async () => {
    const { agent, undone } = locking(style);
    const store = new MemoryStore();
    const first = await startEngine([agent], store);
    const run_id = await begun(first, 'works');
    const row = await store.run(run_id);
    if (row === undefined) throw new Error('the run is in the store');
    await store.commit([{ row: { ...row, epoch: row.epoch + 1 }, from: row.epoch, expect: row.last, lines: [] }]);
    // Its next write is fenced.
    await first.resume(run_id, yes).catch(() => undefined);
    await first.stop();
    await waits();
    expect(undone).toEqual([]);
  });

  it('is undone where it is cancelled', async () => {
    const { agent, undone } = locking(style);
    const engine = await engineOf([agent]);
    const run_id = await begun(engine, 'works');
    await engine.cancel(run_id);
    expect((await toTheEnd(engine, run_id)).run.status).toBe('cancelled');
    expect(undone).toEqual(style === 'generator' ? ['refund', 'unlock'] : ['unlock']);
  });
});

it('is not pulled any more, as a generator, once its run has left', async () => {
  let pulled = 0;
  const agent = durable(async function* () {
    for (;;) {
      pulled += 1;
      yield 'tick ';
      await turn();
    }
  });
  const engine = await startEngine([agent], new MemoryStore());
  await begin(engine, 'works');
  await until(() => pulled > 2);
  await engine.stop();
  await waits(5);
  const before = pulled;
  await waits();
  expect(pulled).toBe(before);
});

/** Counts the sweeps, each of which looks for runs that may leave memory. */
class SweptStore extends MemoryStore {
  sweeps = 0;

  override async due(...query: Parameters<MemoryStore['due']>): Promise<RunRow[]> {
    this.sweeps += 1;
    return super.due(...query);
  }
}

/** Work that goes on beside a question. Each says `done` when it is over. */
const beside: [string, (context: AgentContext, pause: () => Promise<unknown>) => Promise<unknown>][] = [
  ['a step', ({ step }, pause) => Promise.resolve(step('slow', pause))],
  ['a call of another agent', ({ call }) => Promise.resolve(call('slow', 'go'))],
  [
    'a branch that is between two steps',
    async ({ step }, pause) => {
      await step('first', () => Promise.resolve(1));
      await pause();
      await step('second', () => Promise.resolve(2));
    },
  ],
];

describe.each(beside)('a run that awaits beside %s', (_, work) => {
  const agents = (pause: () => Promise<unknown>, done: () => void) => [
    durable((_, context) =>
      race(
        context.await('Stop?').pipe(map(() => 'stopped')),
        from(Promise.resolve()).pipe(
          concatMap(() => work(context, pause)),
          map(() => {
            done();
            return 'done';
          }),
        ),
      ),
    ),
    defineAgent({ name: 'slow', description: 'Is slow.' }, async () => {
      await pause();
      return 'result';
    }),
  ];

  it('goes on with it without a reply, however long that takes', async () => {
    const { promise: finished, resolve: finish } = deferred();
    let done = false;
    const store = new SweptStore();
    const engine = await engineOf(
      agents(
        () => finished,
        () => (done = true),
      ),
      store,
      resting,
    );
    const run_id = await begin(engine, 'works');
    await until(async () => (await store.run(run_id))?.status === 'awaiting');
    // Far longer than `passivateAfter`.
    const before = store.sweeps;
    await until(() => store.sweeps >= before + 30);
    expect((await store.run(run_id))?.rests_at).toBeNull();
    finish();
    expect(textOf((await toTheEnd(engine, run_id)).run)).toBe('done');
    expect(done).toBe(true);
  });

  it('goes on with it in the next process without a reply', async () => {
    const store = new MemoryStore();
    const never = () => new Promise<never>(() => {});
    const first = await startEngine(
      agents(never, () => {}),
      store,
      { shutdownGrace: 0 },
    );
    const run_id = await begin(first, 'works');
    await until(async () => (await store.run(run_id))?.status === 'awaiting');
    await waits(20);
    await first.stop();
    const second = await engineOf(
      agents(
        () => Promise.resolve(),
        () => {},
      ),
      store,
      resting,
    );
    expect(textOf((await toTheEnd(second, run_id)).run)).toBe('done');
  });
});

it('rests again after branches that have ended, with a later question', async () => {
  const agent = durable(async function* (_, { step, await: ask }) {
    const all = await Promise.all(['a', 'b', 'c'].map((name) => step(name, async () => name)));
    yield `${all.join('')} `;
    yield textOfMessage((await ask('Go on?')).message);
  });
  const store = new MemoryStore();
  const engine = await engineOf([agent], store, resting);
  const run_id = await begin(engine, 'works');
  await atRest(store, run_id);
  await engine.resume(run_id, yes);
  expect(textOf((await toTheEnd(engine, run_id)).run)).toBe('abc yes');
});

it('rests beside nothing but questions, several at once', async () => {
  const agent = durable((_, context) =>
    merge(...['A?', 'B?'].map((text) => context.await(text).pipe(map(({ message }) => textOfMessage(message))))),
  );
  const store = new MemoryStore();
  const engine = await engineOf([agent], store, resting);
  const run_id = await begin(engine, 'works');
  await atRest(store, run_id);
});

/** Books a seat in a step, asks, and frees the seat where it is cancelled. */
function freeing(done: string[], beforeFreed: () => Promise<void> = async () => {}) {
  return durable(async function* (_, context) {
    const seat = await context.step('book', async () => `seat ${done.push('booked')}`);
    try {
      yield textOfMessage((await context.await('Keep it?')).message);
    } catch (error) {
      await context.cleanup('free', async () => {
        done.push(`freed ${seat}`);
        await beforeFreed();
      });
      await context.cleanup('tell', async () => done.push('told'));
      throw error;
    }
  });
}

describe('the agent of a cancelled durable run', () => {
  it('begins no other step, also where it works while the cancel comes', async () => {
    const done: string[] = [];
    const { promise: working, resolve: finish } = deferred();
    const agent = durable(async (_, context) => {
      await working;
      await context.step('charge', async () => done.push('charged')).then(undefined, () => done.push('refused'));
      await context.cleanup('tell', async () => done.push('told'));
      return 'done';
    });
    const engine = await engineOf([agent]);
    const run_id = await begun(engine, 'works', 'in-progress');
    await engine.cancel(run_id);
    finish();
    expect((await toTheEnd(engine, run_id)).run.status).toBe('cancelled');
    expect(done).toEqual(['refused', 'told']);
  });

  it('cleans up in steps of their own, before the run is cancelled', async () => {
    const done: string[] = [];
    const engine = await engineOf([freeing(done)]);
    const run_id = await begun(engine, 'works');
    await engine.cancel(run_id);
    expect((await toTheEnd(engine, run_id)).run.status).toBe('cancelled');
    expect(done).toEqual(['booked', 'freed seat 1', 'told']);
  });

  it('undoes nothing before the cancel is durable', async () => {
    const store = new RecordingStore();
    const durableAt: number[] = [];
    const agent = durable(async (_, context) => {
      try {
        await context.await('Keep it?');
      } finally {
        durableAt.push(store.durable);
      }
      return 'kept';
    });
    const engine = await engineOf([agent], store);
    const run_id = await begun(engine, 'works');
    const before = store.durable;
    await engine.cancel(run_id);
    await toTheEnd(engine, run_id);
    expect(durableAt).toEqual([before + 1]);
  });

  it('cleans up once, wherever a crash comes', async () => {
    const done: string[] = [];
    const store = new RecordingStore();
    const first = await startEngine([freeing(done)], store);
    const run_id = await begun(first, 'works');
    const awaited = store.commits.length;
    await first.cancel(run_id);
    expect((await toTheEnd(first, run_id)).run.status).toBe('cancelled');
    await first.stop();
    const freed: number[] = [];
    for (let cut = awaited + 1; cut < store.commits.length; cut += 1) {
      const again: string[] = [];
      const disk = await store.after(cut);
      const second = await startEngine([freeing(again)], disk);
      const { run, events } = await toTheEnd(second, run_id);
      await second.stop();
      expect([run.status, events.at(-1)?.type]).toEqual(['cancelled', 'run.cancelled']);
      expect(again).not.toContain('booked');
      freed.push(again.filter((what) => what === 'freed seat 1').length);
    }
    // Until the step is journaled, a crash repeats it; after that, none does.
    expect(freed).toEqual(freed.toSorted().toReversed());
    expect(freed[0]).toBe(1);
    expect(freed.at(-1)).toBe(0);
  });

  it('cleans up as well where the run rested, or its process had died', async () => {
    for (const ends of ['rests', 'stops'] as const) {
      const store = new MemoryStore();
      const done: string[] = [];
      const first = await startEngine([freeing(done)], store, ends === 'rests' ? resting : {});
      const run_id = await begun(first, 'works');
      if (ends === 'rests') await atRest(store, run_id);
      await first.stop();
      const second = await startEngine([freeing(done)], store);
      expect(JSON.parse(await second.cancel(run_id)).status).toBe('cancelling');
      expect((await toTheEnd(second, run_id)).run.status).toBe('cancelled');
      expect(done).toEqual(['booked', 'freed seat 1', 'told']);
      await second.stop();
    }
  });

  it('has `cancelGrace` for that', async () => {
    const done: string[] = [];
    const engine = await engineOf([freeing(done, () => new Promise(() => {}))], new MemoryStore(), {
      cancelGrace: 20,
    });
    const run_id = await begun(engine, 'works');
    await engine.cancel(run_id);
    expect((await toTheEnd(engine, run_id)).run.status).toBe('cancelled');
    await waits();
    expect(done).toEqual(['booked', 'freed seat 1']);
  });
});

describe('the awaited answer of an agent that is not durable', () => {
  it('is the same in every life, and the agent may do anything', async () => {
    const effects = new Effects();
    const caller = durable(async function* (_, context) {
      const first = textOfMessage(await context.call('random', 'a'));
      yield `${first.length} `;
      await context.step('charge', async () => effects.add('charge', first));
      yield textOfMessage(await context.call('random', 'b')).length.toString();
    });
    const random: AgentFunction = async function* (_, { step, session, call }) {
      yield randomUUID();
      yield* [await step('more', async () => randomUUID()), String(await session.state()), randomUUID()];
      yield textOfMessage(await call('echo', randomUUID()));
    };
    const { cuts, run } = await cutEverywhere(caller, 'go', { calls: { random, echo: (input) => input }, effects });
    expect(cuts).toBeGreaterThan(3);
    expect(textOf(run)).toMatch(/^\d+ \d+$/);
  });

  it('cannot depend on a question, which no other life could repeat', async () => {
    const caller = durable(async (_, context) => textOfMessage(await context.call('asks', 'a')));
    const asks = defineAgent({ name: 'asks', description: 'Asks.' }, (_, context) =>
      context.await('Sure?').pipe(map(() => 'sure')),
    );
    const engine = await engineOf([caller, asks]);
    const { run } = await toTheEnd(engine, await begin(engine, 'works'));
    expect(run.error?.message).toContain('Agent asks asks within a call that a durable agent awaits');
  });
});
