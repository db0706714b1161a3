import { AsyncLocalStorage } from 'node:async_hooks';
import { concat, defer, finalize, map, NEVER, Observable, of, timer } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Agent, type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import { errorOf } from '../../src/core/errors.ts';
import { failureOf } from '../../src/engine/execution/failure.ts';
import { isReported } from '../../src/engine/unhandled.ts';
import type { Message } from '../../src/schema/message.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { engineOf } from '../support/engine.ts';
import { again, begin, eventsOf, runOf, toTheEnd, whole } from '../support/lives.ts';
import { processorTime } from '../support/processor-time.ts';
import { textOf as text } from '../support/run-output.ts';

const agentOf = (run: AgentFunction, name = 'odd', durable = false): Agent =>
  defineAgent({ name, description: 'Odd.' }, run, { durable });

/** Unhandled errors, which would end the process; the tests expect none. */
function strays(): unknown[] {
  const seen: unknown[] = [];
  const stray = (error: unknown): void => void seen.push(error);
  const kinds = ['uncaughtException', 'unhandledRejection'];
  const emitter: NodeJS.EventEmitter = process;
  const before = kinds.map((kind) => emitter.listeners(kind) as ((...args: unknown[]) => void)[]);
  for (const kind of kinds) emitter.removeAllListeners(kind).on(kind, stray);
  onTestFinished(() => {
    kinds.forEach((kind, index) => {
      emitter.removeAllListeners(kind);
      for (const listener of before[index] ?? []) emitter.on(kind, listener);
    });
  });
  return seen;
}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
const boom = (): never => {
  throw new Error('boom');
};

describe('a thenable', () => {
  it.each([
    ['that an agent returns', (query: PromiseLike<string>) => agentOf(() => query)],
    [
      'that a step returns',
      (query: PromiseLike<string>) => agentOf((_, context) => context.step('query', () => query), 'odd', true),
    ],
  ])('%s is asked once', async (_, make) => {
    let queries = 0;
    // Like a query builder: each call of `then` runs the query.
    const query: PromiseLike<string> = {
      // biome-ignore lint/suspicious/noThenProperty: that is what is tested
      // biome-ignore lint/suspicious/noExplicitAny: the signature of `then`
      then: (resolve: any, reject: any) => {
        queries += 1;
        return Promise.resolve(`row ${queries}`).then(resolve, reject);
      },
    };
    const { run } = await whole([make(query)]);
    expect(text(run)).toBe('row 1');
    expect(queries).toBe(1);
  });
});

it('leaves no unhandled rejection of what an agent began and did not wait for', async () => {
  const seen = strays();
  const agent = agentOf((_, context) => {
    void context.await('?').then(() => 'replied');
    return timer(5).pipe(map(() => 'done'));
  });
  const { run } = await whole([agent]);
  await settle();
  expect([run.status, seen]).toEqual(['completed', []]);
});

it('resumes an awaiting run as usual, although promises of its agent rejected unhandled when it left memory', async () => {
  const seen = strays();
  const left = vi.fn();
  const agent = agentOf(
    async (_, context) => {
      context.signal.addEventListener('abort', left);
      const question = context.await('?');
      void question.then(() => 'not waited for');
      void (async () => await question)();
      return `You said ${(await question).message.parts[0]?.content}`;
    },
    'odd',
    true,
  );
  const engine = await engineOf([agent], new MemoryStore(), { passivateAfter: 1, sweepInterval: 1 });
  const run_id = await begin(engine, 'odd');
  await expect.poll(() => left.mock.calls).toHaveLength(1);
  await settle();
  expect(seen.filter((error) => !isReported(error))).toEqual([]);
  expect((await runOf(engine, run_id)).status).toBe('awaiting');
  await engine.resume(run_id, { type: 'message', message: { parts: [{ content: 'yes' }] } });
  const { run } = await toTheEnd(engine, run_id);
  expect([run.status, text(run), run.questions?.length]).toEqual(['completed', 'You said yes', 1]);
});

describe('whatever an agent throws, the process lives and the run ends', () => {
  const cases: [string, AgentFunction, 'completed' | 'failed' | 'cancelled'][] = [
    [
      'in a listener of its signal',
      (_, { signal }) => {
        signal.addEventListener('abort', boom);
        signal.addEventListener('abort', async () => boom());
        signal.onabort = boom;
        return NEVER;
      },
      'cancelled',
    ],
    ['in its teardown, when it is cancelled', () => NEVER.pipe(finalize(boom)), 'cancelled'],
    [
      'in its teardown, when a timer completes it',
      () =>
        defer(
          () =>
            new Observable<string>((subscriber) => {
              const handle = setTimeout(() => subscriber.complete(), 1);
              return () => {
                clearTimeout(handle);
                boom();
              };
            }),
        ),
      'completed',
    ],
    ['in `subscribe`', () => ({ subscribe: boom }) as never, 'failed'],
    [
      'in a getter of `then`',
      () =>
        ({
          // biome-ignore lint/suspicious/noThenProperty: that is what is tested
          get then() {
            return boom();
          },
        }) as never,
      'failed',
    ],
    // biome-ignore lint/suspicious/noThenProperty: that is what is tested
    ['in `then`', () => ({ then: boom }) as never, 'failed'],
    ['in an iterator’s `next`', () => ({ [Symbol.iterator]: () => ({ next: boom, return: boom }) }) as never, 'failed'],
    [
      'in an iterator’s `return`',
      () =>
        ({
          [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}), return: boom }),
        }) as never,
      'cancelled',
    ],
    [
      'in `unsubscribe` of what it subscribed to',
      () => ({ subscribe: () => ({ unsubscribe: boom }) }) as never,
      'cancelled',
    ],
    [
      'in a getter of what it emits',
      () =>
        of({
          get content(): string {
            return boom();
          },
        }),
      'failed',
    ],
  ];
  it.each(cases)('%s', async (_, run, status) => {
    const seen = strays();
    const engine = await engineOf([agentOf(run)], new MemoryStore(), { cancelGrace: 5 });
    const run_id = await begin(engine, 'odd');
    await settle();
    if (status === 'cancelled') await engine.cancel(run_id);
    expect((await toTheEnd(engine, run_id)).run.status).toBe(status);
    await settle();
    expect(seen).toEqual([]);
  });

  it('where it subscribes to a step or an await without handling its error', async () => {
    const seen = strays();
    const failing = agentOf(
      (_, context) => {
        context.step('bad', () => Promise.reject(new Error('not handled'))).subscribe();
        return NEVER;
      },
      'odd',
      true,
    );
    expect((await whole([failing])).run.error?.message).toBe('not handled');
    let late: (() => void) | undefined;
    const waiting = agentOf((_, context) => {
      context.await('?').subscribe();
      late = () => void context.await('??').subscribe();
      return of('done');
    });
    expect((await whole([waiting])).run.status).toBe('completed');
    late?.();
    await settle();
    expect(seen).toEqual([]);
  });

  it('where the engine’s promises reject and the agent does not await them', async () => {
    const seen = strays();
    const agent = agentOf((_, context) => {
      void context.session.setState(1n);
      return of('a').pipe(finalize(() => void context.session.setState(1)));
    });
    expect((await whole([agent])).run.status).toBe('completed');
    await settle();
    expect(seen).toEqual([]);
  });
});

describe('what the log has of a failed run', () => {
  it.each([
    ['an error', new Error('a'.repeat(200_000))],
    ['a text', 'a'.repeat(200_000)],
  ])('is found in time that grows with the length of %s', (_, thrown) => {
    const started = processorTime();
    for (let times = 0; times < 200; times += 1)
      expect(failureOf(errorOf(thrown), thrown)).toContain('a'.repeat(1_000));
    // Quadratic, it would take eight seconds.
    expect(processorTime() - started).toBeLessThan(2_000);
  });

  it('has no passwords and queries of URLs', () => {
    const failure = failureOf(errorOf('at redis://:secret@host and (https://me:secret@host/path?key=secret)'), '');
    expect(failure).toBe('at redis://host and (https://host/path)');
  });
});

describe('an error that an agent catches', () => {
  it('has the same class, code, data and text in a replay', async () => {
    class Custom extends TypeError {
      readonly code = 'E_CUSTOM';
    }
    const lives: string[] = [];
    const agent = agentOf(
      (_, context) =>
        defer(async () => {
          const step = context.step('bad', () => {
            throw new Custom('not like this');
          });
          const told = await new Promise<string>((resolve) =>
            step.subscribe({
              error: (error: Error & { code: string }) =>
                resolve(`${String(error)} ${error.constructor.name} ${error.code} ${error instanceof TypeError};`),
            }),
          );
          lives.push(told);
          return told;
        }).pipe((told) =>
          concat(
            told,
            context.step('pause', () => timer(1).pipe(map(() => 'end'))),
          ),
        ),
      'odd',
      true,
    );
    const first = await whole([agent]);
    for (let cut = 1; cut < first.store.commits.length; cut += 1) {
      const life = await again([agent], first.store, cut);
      if (life !== undefined) expect(life.run).toMatchObject({ status: 'completed' });
    }
    expect(new Set(lives).size).toBe(1);
    expect(lives.length).toBeGreaterThan(1);
  });
});

describe('an agent’s input and output', () => {
  it('may be changed by the agent without effect on the run, its history and its replays', async () => {
    const given: string[] = [];
    const emitted = { type: 'generic' as const, generic: { list: [1] } };
    const agent = agentOf(
      (input: Message[], context) => {
        given.push(JSON.stringify(input));
        const [message] = input;
        if (message !== undefined) {
          message.parts.push({ content: 'smuggled' });
          message.role = 'agent';
        }
        input.push({ role: 'user', parts: [], created_at: '', completed_at: '' });
        return concat(
          defer(() => of(emitted)),
          context.step('pause', () =>
            timer(1).pipe(
              map(() => {
                emitted.generic.list.push(2);
                return 'end';
              }),
            ),
          ),
        );
      },
      'odd',
      true,
    );
    const { store, run, events } = await whole([agent]);
    expect(events).toContainEqual({ type: 'generic', generic: { list: [1] } });
    emitted.generic.list = [1];
    const disk = await store.after(store.commits.length - 1);
    const life = await again([agent], store, store.commits.length - 1);
    expect(life?.run.status).toBe('completed');
    expect(given).toHaveLength(2);
    expect(given[1]).toBe(given[0]);
    expect(JSON.stringify(await disk.input(run.run_id))).toBe(given[0]);
    const session = await store.session(run.session_id ?? '');
    const [said] = await store.resources([(session?.history[0] ?? '').slice('/resources/'.length)]);
    expect(said?.body).toBe(JSON.stringify(JSON.parse(given[0] ?? '[]')[0]));
  });

  it('are copies of what the request says beside its messages', async () => {
    const given: string[] = [];
    const agent = agentOf(
      (_, context) => {
        given.push(JSON.stringify(context.request));
        Object.assign(context.request.metadata ?? {}, { mine: true });
        return context.step('pause', () => timer(1).pipe(map(() => 'end')));
      },
      'odd',
      true,
    );
    const store = new MemoryStore();
    const first = await startEngine([agent], store);
    const request = { protocol: 'openai', metadata: { temperature: 1 } };
    const { run_id } = await first.create({ agent_name: 'odd', input: [{ parts: [{ content: 'go' }] }] }, { request });
    await first.stop();
    const second = await engineOf([agent], store);
    expect((await toTheEnd(second, run_id)).run.status).toBe('completed');
    expect(given).toEqual(Array(given.length).fill(JSON.stringify(request)));
    expect(await store.input(run_id)).toMatchObject({ request: { protocol: 'openai', metadata: { temperature: 1 } } });
  });

  it.each([false, true])('are copies of the replies as well (durable: %s)', async (durable) => {
    const agent = agentOf(
      (_, context) =>
        context.await('?').pipe(
          map(({ message }) => {
            for (const part of message.parts) part.content = 'changed';
            return 'thanks';
          }),
        ),
      'odd',
      durable,
    );
    const { run, store } = await whole([agent], () => 'as sent');
    expect(run.questions?.[0]?.reply?.message.parts[0]?.content).toBe('as sent');
    expect(JSON.stringify(store.commits)).not.toContain('changed');
  });

  it('are copies in a called agent as well', async () => {
    const message: Message = {
      role: 'user',
      parts: [{ content_type: 'text/plain', content: 'mine' }],
      created_at: '2026-01-01T00:00:00.000Z',
      completed_at: null,
    };
    const caller = agentOf((_, context) =>
      concat(
        context.call('callee', message),
        defer(() => of(message.parts[0]?.content ?? '')),
      ),
    );
    const callee = agentOf((input) => {
      const part = input[0]?.parts[0];
      if (part !== undefined) part.content = 'changed';
      return of('called ');
    }, 'callee');
    expect(text((await whole([caller, callee])).run)).toBe('called mine');
  });
});

describe('an agent’s async context', () => {
  it('is that of the engine, and not of the request or run that started it', async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const agent = agentOf((_, context) => {
      seen.push(storage.getStore());
      return storage.run(`run ${context.run_id}`, () => timer(1).pipe(map(() => 'done')));
    });
    const engine = await engineOf([agent]);
    const session_id = '01a1fd1f-f84b-7740-b3c6-734c49e187db';
    const runs = await Promise.all(
      ['a', 'b', 'c'].map((content) =>
        storage.run(`request ${content}`, () =>
          engine.create({ agent_name: 'odd', session_id, input: [{ parts: [{ content }] }] }, { if_busy: 'enqueue' }),
        ),
      ),
    );
    for (const { run_id } of runs) await toTheEnd(engine, run_id);
    expect(seen).toEqual([undefined, undefined, undefined]);
    expect(await eventsOf(engine, runs[0]?.run_id ?? '')).not.toEqual([]);
  });
});
