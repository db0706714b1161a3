import { concat, map, merge, race, Subject, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type AgentContext, type AgentFunction, type AgentOutput, defineAgent } from '../../src/core/agent.ts';
import type { Key } from '../../src/core/ports/run-store.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { AwaitResume, Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { engineOf } from '../support/engine.ts';
import { Hold } from '../support/hold.ts';
import { begin, begun, eventsOf, runOf, toTheEnd, whole } from '../support/lives.ts';
import { textOf as text } from '../support/run-output.ts';
import { turns } from '../support/turn.ts';

const agentOf = (run: AgentFunction, durable = true) =>
  defineAgent({ name: 'asks', description: 'Asks.' }, run, { durable });
const said = ({ message }: AwaitResume): string => `${message.parts[0]?.content};`;
const reply = (content: string, id?: string) => ({
  type: 'message',
  message: { parts: [{ content }] },
  ...(id !== undefined && { id }),
});

/** Waits until the run awaits its n-th question. */
async function asked(engine: Engine, run_id: string, id: string): Promise<Run> {
  for (;;) {
    const run = await runOf(engine, run_id);
    if (run.await_request?.id === id) return run;
    await new Promise(setImmediate);
  }
}

const twice = (_: unknown, context: AgentContext) =>
  concat(context.await('first?').pipe(map(said)), context.await('second?').pipe(map(said)));

/** Looks for no key until the test says so. */
class SlowKeys extends RecordingStore {
  answer = (): void => {};
  readonly #answered = new Promise<void>((resolve) => {
    this.answer = resolve;
  });

  override async key(scope: string, key: string): Promise<Key | undefined> {
    await this.#answered;
    return super.key(scope, key);
  }
}

/** A reply without an id that waits for its key while another one answers the first question is not for the second. */
async function expectLateRefused(store: SlowKeys, engine: Engine, run_id: string): Promise<void> {
  const late = engine.resume(run_id, reply('late'), { idempotency_key: 'k' });
  await engine.resume(run_id, reply('a'));
  await asked(engine, run_id, '2');
  store.answer();
  await expect(late).rejects.toMatchObject({ kind: 'question_mismatch' });
  expect(text(await asked(engine, run_id, '2'))).toBe('a;');
}

describe.each([false, true])('a question (durable: %s)', (durable) => {
  it('has its number within the run as its id', async () => {
    const { events } = await whole([agentOf(twice, durable)], () => 'yes');
    const ids = events.flatMap((event) => (event.type === 'run.awaiting' ? [event.run.await_request?.id] : []));
    expect(ids).toEqual(['1', '2']);
  });

  it('accepts a reply with its id or without one, and refuses a reply to another question with 409', async () => {
    const engine = await engineOf([agentOf(twice, durable)], new RecordingStore());
    const run_id = await begin(engine, 'asks');
    await asked(engine, run_id, '1');
    await expect(engine.resume(run_id, reply('a', '2'))).rejects.toMatchObject({
      kind: 'question_mismatch',
      status: 409,
    });
    await engine.resume(run_id, reply('a', '1'));
    await asked(engine, run_id, '2');
    await expect(engine.resume(run_id, reply('late', '1'))).rejects.toMatchObject({ kind: 'question_mismatch' });
    await engine.resume(run_id, reply('b'));
    expect(text((await toTheEnd(engine, run_id)).run)).toBe('a;b;');
  });

  it('gets its own reply, and not a late one to the question before', async () => {
    const engine = await engineOf([agentOf(twice, durable)], new RecordingStore());
    const run_id = await begin(engine, 'asks');
    await asked(engine, run_id, '1');
    const replies = await Promise.allSettled(['a', 'b'].map((one) => engine.resume(run_id, reply(one, '1'))));
    expect(replies.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect((await asked(engine, run_id, '2')).output.map(({ parts }) => parts[0]?.content)).toEqual(['a;']);
  });

  it('gets one of two replies without an id that come at once, and the next question neither', async () => {
    const engine = await engineOf([agentOf(twice, durable)], new RecordingStore());
    const run_id = await begin(engine, 'asks');
    await asked(engine, run_id, '1');
    const replies = await Promise.allSettled(['a', 'b'].map((one) => engine.resume(run_id, reply(one))));
    expect(replies.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(text(await asked(engine, run_id, '2'))).toBe('a;');
  });

  it('does not get a reply without an id that came before it, however slowly the store looked for its key', async () => {
    const store = new SlowKeys();
    const engine = await engineOf([agentOf(twice, durable)], store);
    const run_id = await begin(engine, 'asks');
    await asked(engine, run_id, '1');
    await expectLateRefused(store, engine, run_id);
    await engine.resume(run_id, reply('b'));
    expect(text((await toTheEnd(engine, run_id)).run)).toBe('a;b;');
  });
});

it('a question of a run in the store does not get a reply without an id that came before it', async () => {
  const store = new SlowKeys();
  const agent = agentOf(twice, true);
  const first = await startEngine([agent], store);
  const run_id = await begin(first, 'asks');
  await asked(first, run_id, '1');
  await first.stop();
  const engine = await engineOf([agent], store);
  await expectLateRefused(store, engine, run_id);
});

describe('the ids of questions', () => {
  it('stay the same when the run is re-entered', async () => {
    const store = new RecordingStore();
    const agent = agentOf((_, context) =>
      merge(context.await('left?').pipe(map(said)), context.await('right?').pipe(map(said))),
    );
    const first = await startEngine([agent], store);
    const run_id = await begin(first, 'asks');
    await first.resume((await asked(first, run_id, '1')).run_id, reply('a', '1'));
    await asked(first, run_id, '2');
    await first.stop();
    const second = await engineOf([agent], store);
    await second.resume(run_id, reply('b', '2'));
    const { run } = await toTheEnd(second, run_id);
    expect(text(run)).toBe('a;b;');
  });
});

describe('a question that is raced against a timer in a step', () => {
  const agent = (time: () => number) =>
    agentOf(
      (_, context): ReturnType<AgentFunction> =>
        race<AgentOutput[]>(
          context.await('anything?').pipe(map(said)),
          context.step('timer', () => timer(time()).pipe(map(() => 'nothing.'))),
        ),
    );

  it('times out after a crash as well', async () => {
    const store = new RecordingStore();
    let time = 1_000_000;
    const first = await startEngine([agent(() => time)], store);
    const run_id = await begin(first, 'asks');
    await asked(first, run_id, '1');
    const disk = await store.after(store.commits.length);
    await first.stop();
    time = 1;
    const second = await engineOf([agent(() => time)], disk);
    const { run } = await toTheEnd(second, run_id);
    expect([run.status, text(run)]).toEqual(['completed', 'nothing.']);
  });

  it('gets a reply that came before the timer was over, however slowly the store takes the reply', async () => {
    const store = new MemoryStore();
    const over = new Subject<string>();
    const asks = agentOf((_, context) =>
      race(
        context.await('?').pipe(map(said)),
        context.step('timer', () => over),
      ),
    );
    const engine = await engineOf([asks], store);
    const run_id = await begun(engine, 'asks');
    const commits = new Hold();
    const commit = store.commit.bind(store);
    store.commit = async (writes) => {
      if (writes.some(({ lines }) => lines.join().includes('await_resume'))) await commits.come();
      return commit(writes);
    };
    const accepted = engine.resume(run_id, reply('yes'));
    await commits.held();
    over.next('no reply');
    over.complete();
    await turns(20);
    commits.letGo();
    await accepted;
    expect(text((await toTheEnd(engine, run_id)).run)).toBe('yes;');
  });

  it('does not leave memory while the timer runs', async () => {
    const limits = { passivateAfter: 1, sweepInterval: 1 };
    const engine = await engineOf([agent(() => 50)], new RecordingStore(), limits);
    const run_id = await begin(engine, 'asks');
    const { run } = await toTheEnd(engine, run_id);
    expect([run.status, text(run)]).toEqual(['completed', 'nothing.']);
    expect((await eventsOf(engine, run_id)).filter(({ type }) => type === 'run.awaiting')).toHaveLength(1);
  });
});
