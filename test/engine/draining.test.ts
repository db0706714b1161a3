import { concat, defer, from, map, merge, NEVER, type Observable, of, Subject } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import { textOf as textOfMessage } from '../../src/core/parts.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Limits } from '../../src/engine/limits.ts';
import type { Event } from '../../src/schema/event.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { durable } from '../support/agents.ts';
import { engineOf } from '../support/engine.ts';
import { begin, begun, runOf, toTheEnd } from '../support/lives.ts';
import { textOf } from '../support/run-output.ts';
import { holdCommits } from '../support/takeovers.ts';
import { turn, turns } from '../support/turn.ts';

const reply = { type: 'message' as const, message: { parts: [{ content: 'yes ' }] } };
const longGrace = { shutdownGrace: 60_000 };

/** Two steps, the first of which works as the test says. Counts how often each has begun. */
function twoSteps(name = 'works') {
  const begun = { first: 0, second: 0 };
  const work = new Subject<string>();
  const agent = durable(name, (_, context) => {
    const step = (which: keyof typeof begun, does: () => Observable<string>) =>
      context.step(which, () => {
        begun[which] += 1;
        return does();
      });
    return concat(
      step('first', () => work),
      defer(() => step('second', () => of('second '))),
    );
  });
  const end = (): void => {
    work.next('first ');
    work.complete();
  };
  return { agent, begun, work, end };
}

/** The texts that a reader of a run gets, until its stream ends. */
function reading(engine: Engine, run_id: string) {
  const texts: string[] = [];
  const ended = (async () => {
    for await (const { lines } of await engine.openCursor(run_id)) {
      for (const line of lines) {
        const event: Event = JSON.parse(line);
        if (event.type === 'message.part') texts.push(event.part.content ?? '');
      }
    }
  })();
  return { texts, ended };
}

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await turn();
};

describe('a durable run whose process stops', () => {
  it('ends the step that works and journals it, and begins no other one', async () => {
    const store = new MemoryStore();
    const { agent, begun, end } = twoSteps();
    const first = await startEngine([agent], store, longGrace);
    const run_id = await begin(first, 'works');
    await until(() => begun.first > 0);
    const stopped = first.stop();
    await turns(10);
    end();
    await stopped;
    expect(begun).toEqual({ first: 1, second: 0 });
    const next = await engineOf([agent], store);
    expect(textOf((await toTheEnd(next, run_id)).run)).toBe('first second ');
    expect(begun).toEqual({ first: 1, second: 1 });
  });

  it('is streamed until its step has ended, while other runs go on', async () => {
    const [one, other] = [twoSteps('one'), twoSteps('other')];
    const engine = await startEngine([one.agent, other.agent], new MemoryStore(), longGrace);
    const readers = {
      one: reading(engine, await begin(engine, 'one')),
      other: reading(engine, await begin(engine, 'other')),
    };
    await until(() => one.begun.first + other.begun.first === 2);
    const stopped = engine.stop();
    await turns(10);
    one.work.next('a ');
    await until(() => readers.one.texts.length === 1);
    one.end();
    await readers.one.ended;
    other.work.next('b ');
    await until(() => readers.other.texts.length === 1);
    other.end();
    await readers.other.ended;
    await stopped;
    expect([readers.one.texts, readers.other.texts]).toEqual([
      ['a ', 'first '],
      ['b ', 'first '],
    ]);
  });

  it('begins no call of an agent', async () => {
    let called = 0;
    const { agent, begun, end } = twoSteps();
    const calls = durable('calls', (input, context) =>
      concat(
        agent.run(input, context) as Observable<string>,
        defer(() => context.call('called', 'go')),
      ),
    );
    const callee = defineAgent({ name: 'called', description: 'Is called.' }, () => {
      called += 1;
      return 'called';
    });
    const engine = await startEngine([calls, callee], new MemoryStore(), longGrace);
    await begin(engine, 'calls');
    await until(() => begun.first > 0);
    const stopped = engine.stop();
    end();
    await stopped;
    expect([called, begun.second]).toEqual([0, 0]);
  });

  it('leaves within `shutdownGrace` although its step goes on, and so does a run that is not durable', async () => {
    const store = new MemoryStore();
    const { agent, begun } = twoSteps();
    const plain = defineAgent({ name: 'plain', description: 'Never ends.' }, () => NEVER);
    const engine = await startEngine([agent, plain], store, { shutdownGrace: 10_000 });
    const [durableId, plainId] = [await begin(engine, 'works'), await begin(engine, 'plain')];
    await until(() => begun.first > 0);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    let isStopped = false;
    const stopped = engine.stop().then(() => (isStopped = true));
    await vi.advanceTimersByTimeAsync(9_999);
    await turns(10);
    expect([isStopped, (await store.run(plainId))?.status]).toEqual([false, 'in-progress']);
    await vi.advanceTimersByTimeAsync(1);
    await stopped;
    expect(await store.run(durableId)).toMatchObject({ status: 'in-progress', attempts: 0 });
    expect((await store.run(plainId))?.status).toBe('failed');
  });
});

/** A run that asks beside a step, in a process that stops and waits for that step. */
async function askingAtWork(limits: Partial<Limits> = longGrace) {
  const store = new MemoryStore();
  const work = new Subject<string>();
  const agent = durable('asks', (_, context) =>
    merge(
      context.await('Go on?').pipe(map(({ message }) => textOfMessage(message))),
      context.step('work', () => from(work)),
    ),
  );
  const engine = await startEngine([agent], store, limits);
  const run_id = await begin(engine, 'asks');
  while ((await runOf(engine, run_id)).status !== 'awaiting' || !work.observed) await turn();
  const stopped = engine.stop();
  await turns(10);
  return { store, agent, engine, run_id, work, stopped };
}

describe('a run that asks beside a step, whose process stops', () => {
  it('takes a reply, which the next process has', async () => {
    const { store, agent, engine, run_id, work, stopped } = await askingAtWork();
    expect(JSON.parse((await engine.resume(run_id, reply)).run).status).toBe('in-progress');
    await turns(5);
    work.next('worked ');
    await turns(5);
    expect((await store.journal(run_id)).join()).toContain('worked ');
    work.complete();
    await stopped;
    const next = await engineOf([agent], store);
    const { run } = await toTheEnd(next, run_id);
    expect([run.status, textOf(run)]).toEqual(['completed', 'yes worked ']);
  });

  it('takes a reply at each moment of its release', async () => {
    for (let moment = 0; moment < 30; moment += 1) {
      const { store, agent, engine, run_id, work, stopped } = await askingAtWork();
      work.complete();
      for (let microtask = 0; microtask < moment; microtask += 1) await undefined;
      await turns(moment % 5);
      await engine.resume(run_id, reply);
      await stopped;
      const next = await startEngine([agent], store);
      expect(textOf((await toTheEnd(next, run_id)).run)).toBe('yes ');
      await next.stop();
    }
  });

  it('can be cancelled', async () => {
    const { store, agent, engine, run_id, work, stopped } = await askingAtWork();
    expect(JSON.parse(await engine.cancel(run_id)).status).toBe('cancelling');
    expect(work.observed).toBe(false);
    await stopped;
    const next = await engineOf([agent], store);
    expect((await toTheEnd(next, run_id)).run.status).toBe('cancelled');
  });

  it('ends here where it is cancelled meanwhile, after its agent has stopped and cleaned up', async () => {
    const done: string[] = [];
    let finish = (): void => {};
    const working = new Promise<void>((resolve) => (finish = () => resolve(void done.push('worked'))));
    const agent = durable('works', async (_, context) => {
      try {
        await context.step('work', () => working);
      } finally {
        await context.cleanup('free', async () => done.push('freed'));
      }
      return 'done';
    });
    const store = new MemoryStore();
    const engine = await startEngine([agent], store, longGrace);
    const run_id = await begun(engine, 'works', 'in-progress');
    const stopped = engine.stop();
    await engine.cancel(run_id);
    await turns(20);
    expect((await store.run(run_id))?.status).toBe('cancelling');
    finish();
    await stopped;
    expect((await store.run(run_id))?.status).toBe('cancelled');
    expect(done).toEqual(['freed', 'worked']);
  });

  it('ends here where its cancel is on its way to the store', async () => {
    const done: string[] = [];
    const agent = durable('asks', async (_, context) => {
      try {
        await context.await('Go on?');
      } finally {
        done.push('stopped');
        await context.cleanup('free', async () => done.push('freed'));
      }
      return 'done';
    });
    const store = new MemoryStore();
    const engine = await startEngine([agent], store, longGrace);
    const run_id = await begun(engine, 'asks', 'awaiting');
    const commits = holdCommits(store, ({ row }) => row.status === 'cancelling');
    const cancelled = engine.cancel(run_id);
    await commits.held();
    const stopped = engine.stop();
    await turns(5);
    commits.letGo();
    await Promise.all([cancelled, stopped]);
    expect((await store.run(run_id))?.status).toBe('cancelled');
    expect(done).toEqual(['stopped', 'freed']);
  });

  it('may be over before it leaves', async () => {
    const { store, engine, run_id, work, stopped } = await askingAtWork();
    await engine.resume(run_id, reply);
    work.complete();
    await stopped;
    expect((await store.run(run_id))?.status).toBe('completed');
  });
});
