import { concatMap, from, map, merge } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { deferred } from '../support/deferred.ts';
import { engineOf } from '../support/engine.ts';
import { Hold } from '../support/hold.ts';
import { answerOf, begin, eventsOf, runOf } from '../support/lives.ts';
import { asksTwice } from '../support/takeovers.ts';
import { turn, turns } from '../support/turn.ts';

const replyTo = (id: string) => ({ id, type: 'message' as const, message: { parts: [{ content: 'yes' }] } });

async function awaits(engine: Engine, run_id: string, question: string): Promise<void> {
  for (;;) {
    const { status, await_request } = await runOf(engine, run_id);
    if (status === 'awaiting' && await_request?.id === question) return;
    await turn();
  }
}

async function asked(engine: Engine): Promise<string> {
  const run_id = await begin(engine, 'asks');
  await awaits(engine, run_id, '1');
  return run_id;
}

/** A run that asks its first question, here or in the store alone. */
async function places(): Promise<[name: string, engine: Engine, run_id: string][]> {
  const found: [string, Engine, string][] = [];
  for (const durable of [true, false]) {
    const engine = await startEngine([asksTwice(durable)], new MemoryStore());
    found.push([durable ? 'durable, here' : 'not durable, here', engine, await asked(engine)]);
  }
  const store = new MemoryStore();
  const before = await startEngine([asksTwice(true)], store);
  const run_id = await asked(before);
  await before.stop();
  found.push(['in the store', await startEngine([asksTwice(true)], store), run_id]);
  return found;
}

describe('a cancel that names a question', () => {
  it('cancels a run while it awaits the reply to it, and not before or after', async () => {
    for (const [place, engine, run_id] of await places()) {
      const cancel = (question: string): Promise<string> => answerOf(engine.cancel(run_id, question));
      expect(await cancel('2'), place).toBe('question_mismatch');
      await engine.resume(run_id, replyTo('1'));
      await awaits(engine, run_id, '2');
      expect(await cancel('1'), place).toBe('question_mismatch');
      expect(await cancel('2'), place).toBe('cancelling');
      while ((await runOf(engine, run_id)).status !== 'cancelled') await turn();
      expect(await cancel('2'), place).toBe('already_final');
      await engine.stop();
    }
  });

  it('has its reason in the final event, wherever the run is; a later cancel gives no other', async () => {
    for (const [place, engine, run_id] of await places()) {
      expect(JSON.parse(await engine.cancel(run_id, '1', 'the reply does not fit')), place).toMatchObject({
        status: 'cancelling',
        cancel_reason: 'the reply does not fit',
      });
      await engine.cancel(run_id, undefined, 'another').catch(() => undefined);
      while ((await runOf(engine, run_id)).status !== 'cancelled') await turn();
      const last = (await eventsOf(engine, run_id)).at(-1);
      expect(last, place).toMatchObject({ type: 'run.cancelled', run: { cancel_reason: 'the reply does not fit' } });
      expect(await runOf(engine, run_id), place).toMatchObject({ cancel_reason: 'the reply does not fit' });
      await engine.stop();
    }
  });

  it.each([true, false])(
    'has its reason also where its node dies before the run ends (durable: %s)',
    async (durable) => {
      const { promise: stopped, resolve: stop } = deferred<string>();
      const agent = defineAgent(
        { name: 'asks', description: 'Works and asks.' },
        (_, context) =>
          merge(
            context.step('work', () => stopped),
            context.await('Go on?').pipe(map(() => 'done')),
          ),
        { durable },
      );
      const store = new RecordingStore();
      const before = await startEngine([agent], store);
      const run_id = await asked(before);
      await before.cancel(run_id, '1', 'the reply does not fit');
      stop('stopped');
      await before.stop();
      const cut = 1 + store.commits.findIndex((writes) => writes.some(({ row }) => row?.status === 'cancelling'));
      const engine = await engineOf([agent], await store.after(cut));
      while ((await runOf(engine, run_id)).status !== 'cancelled') await turn();
      expect(await runOf(engine, run_id)).toMatchObject({ cancel_reason: 'the reply does not fit' });
    },
  );

  it('is refused where the run awaits nothing', async () => {
    const silent = defineAgent({ name: 'asks', description: 'Works.' }, (_, { signal }) => {
      return new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('')));
    });
    const engine = await engineOf([silent]);
    const run_id = await begin(engine, 'asks');
    expect(await answerOf(engine.cancel(run_id, '1'))).toBe('not_awaiting');
    expect((await runOf(engine, run_id)).status).toBe('in-progress');
  });

  it('is taken during a replay, by what the store has', async () => {
    const gate = new Hold();
    let lives = 0;
    // Its step is open, so it is re-entered; it comes to its question when the test lets it.
    const agent = defineAgent(
      { name: 'asks', description: 'Works and asks.' },
      (_, context) => {
        lives += 1;
        return from(lives === 1 ? Promise.resolve() : gate.come()).pipe(
          concatMap(() =>
            merge(
              context.step('work', () => new Promise<string>(() => {})),
              context.await('Go on?'),
            ),
          ),
          map(() => 'done'),
        );
      },
      { durable: true },
    );
    const store = new MemoryStore();
    const before = await startEngine([agent], store);
    const run_id = await asked(before);
    await before.stop();
    const engine = await engineOf([agent], store);
    await gate.held();
    expect(await answerOf(engine.cancel(run_id, '2'))).toBe('question_mismatch');
    expect(await answerOf(engine.cancel(run_id, '1'))).toBe('cancelling');
    expect((await runOf(engine, run_id)).status).toBe('cancelling');
    gate.letGo();
    while ((await runOf(engine, run_id)).status !== 'cancelled') await turn();
  });

  it('is taken again while the agent stops', async () => {
    const { promise: stopped, resolve: stop } = deferred<string>();
    const agent = defineAgent({ name: 'asks', description: 'Works and asks.' }, (_, context) =>
      merge(
        context.step('work', () => stopped),
        context.await('Go on?').pipe(map(() => 'done')),
      ),
    );
    const engine = await engineOf([agent]);
    const run_id = await asked(engine);
    for (const question of [undefined, '1', '1'])
      expect(await answerOf(engine.cancel(run_id, question))).toBe('cancelling');
    expect((await runOf(engine, run_id)).status).toBe('cancelling');
    stop('stopped');
  });

  it.each(['cancel', 'reply'])(
    'at about the same moment as the reply to it, the %s first, is taken exactly where the reply is not',
    async (first) => {
      const outcomes = new Set<string>();
      for (let moment = 0; moment <= 30; moment += 1) {
        for (const [place, engine, run_id] of await places()) {
          const requests = [
            () => answerOf(engine.cancel(run_id, '1')),
            () => answerOf(engine.resume(run_id, replyTo('1')).then(({ run }) => run)),
          ];
          if (first === 'reply') requests.reverse();
          const answers = requests.map(async (request, at) => {
            for (let microtask = 0; microtask < at * moment; microtask += 1) await undefined;
            return request();
          });
          const answered = await Promise.all(answers);
          const [cancelled, replied] = first === 'reply' ? answered.toReversed() : answered;
          expect([cancelled === 'cancelling', replied === 'in-progress'].sort(), `${place} ${answered}`).toEqual([
            false,
            true,
          ]);
          await turns(5);
          const taken = (await eventsOf(engine, run_id)).some((event) => 'run' in event && event.run.await_resume);
          expect(taken, place).toBe(replied === 'in-progress');
          outcomes.add(`${place}: ${replied === 'in-progress' ? 'reply' : 'cancel'}`);
          await engine.stop();
        }
      }
      expect([...outcomes].sort()).toEqual(
        ['durable, here', 'in the store', 'not durable, here'].map((place) => `${place}: ${first}`),
      );
    },
  );
});

describe('a reply to a run that was cancelled', () => {
  it('is refused also while the agent comes to its clean-up after a crash, and does not stop the process', async () => {
    let cleanUps = 0;
    const asks = defineAgent(
      { name: 'asks', description: 'Cleans up.' },
      async function* (_, context) {
        try {
          await context.await('Keep it?');
        } finally {
          const mayEnd = deferred();
          ends.push(mayEnd.resolve);
          await context.cleanup('free', () => {
            cleanUps += 1;
            return mayEnd.promise;
          });
        }
        yield 'kept';
      },
      { durable: true },
    );
    const ends: (() => void)[] = [];
    const store = new RecordingStore();
    const first = await startEngine([asks], store);
    const run_id = await asked(first);
    await first.cancel(run_id);
    while (cleanUps < 1) await turn();
    const disk = await store.after(store.commits.length);
    ends[0]?.();
    await first.stop();
    const second = await startEngine([asks], disk);
    const answers: Promise<string>[] = [];
    while (cleanUps < 2) {
      answers.push(answerOf(second.resume(run_id, replyTo('1')).then(({ run }) => run)));
      await turn();
    }
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['not_awaiting']));
    ends[1]?.();
    while ((await runOf(second, run_id)).status !== 'cancelled') await turn();
    await second.stop();
  });
});
