import { concat, defer, race } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { Hold } from '../support/hold.ts';
import { answerOf, begin, begun } from '../support/lives.ts';
import {
  answered,
  asked,
  asks,
  awaitingOn,
  failOnce,
  give,
  has,
  holdCommits,
  replyTo,
  taken,
  twoNodes,
  workingOn,
} from '../support/takeovers.ts';
import { turn, turns } from '../support/turn.ts';

/** Asks "Go on?" until the test withdraws it; then "Delete all?" */
function withdraws(durable: boolean) {
  let withdraw = (): void => {};
  const withdrawn = new Promise<string>((resolve) => (withdraw = () => resolve('withdrawn')));
  const agent = asks(durable, (_, context) =>
    concat(
      race(replyTo(context, 'Go on?'), durable ? context.step('work', () => withdrawn) : withdrawn),
      replyTo(context, 'Delete all?'),
    ),
  );
  return { agent, withdraw };
}

/** Works until the test says so, then asks another question in its first life than in the next one. */
function works() {
  let lives = 0;
  let end = (): void => {};
  const ended = new Promise<string>((resolve) => (end = () => resolve('ended')));
  const agent = asks(true, (_, context) => {
    lives += 1;
    const isFirst = lives === 1;
    return concat(
      context.step('work', () => (isFirst ? ended : Promise.resolve('ended again'))),
      defer(() => replyTo(context, isFirst ? 'Go on, says the first life?' : 'Go on?')),
    );
  });
  return { agent, end };
}

const resume = async (engine: Engine, run_id: string): Promise<string> => {
  const { run } = await engine.resume(run_id, { type: 'message', message: { parts: [{ content: 'yes' }] } });
  return run;
};

describe('a reply without an id, where the agent has asked another question that is not stored yet,', () => {
  const engines: Engine[] = [];
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop();
  });
  const engineWith = async (...args: Parameters<typeof startEngine>): Promise<Engine> => {
    const engine = await startEngine(...args);
    engines.push(engine);
    return engine;
  };

  it('is not given to that question', async () => {
    const { agent, withdraw } = withdraws(true);
    const { a, b, store } = await twoNodes(agent);
    const run_id = await awaitingOn(a);
    const withdrawal = holdCommits(store, (write) => has('"withdrawn"', write));
    withdraw();
    await withdrawal.held();
    const { await_request } = await (await a.get(`/runs/${run_id}`)).json();
    expect(await_request.message.parts[0].content).toBe('Go on?');
    const reply = give(b, run_id, 'yes');
    await turns(20);
    withdrawal.letGo();
    expect(await reply).toEqual([409, 'question_mismatch']);
    expect(await answered(a, run_id)).toEqual([]);
    expect(await give(b, run_id, 'yes')).toEqual(taken);
  });

  it.each([true, false])(
    'is not given to it by a process that has a store of its own (durable: %s)',
    async (durable) => {
      const { agent, withdraw } = withdraws(durable);
      const store = new MemoryStore();
      const engine = await engineWith([agent], store);
      const run_id = await begun(engine, 'asks');
      const withdrawal = holdCommits(store, ({ lines }) => lines.some((line) => line.includes('Delete all?')));
      withdraw();
      await withdrawal.held();
      const outcome = answerOf(resume(engine, run_id));
      await turns(20);
      withdrawal.letGo();
      expect(await outcome).toBe('question_mismatch');
      expect(await answerOf(resume(engine, run_id))).toBe('in-progress');
    },
  );

  it('is given to it, where it is stored by the time that the store is read', async () => {
    const { agent, withdraw } = withdraws(true);
    const { a, b, store, reads } = await twoNodes(agent, 'b');
    const run_id = await awaitingOn(a);
    const withdrawal = holdCommits(store, (write) => has('"withdrawn"', write), 'after');
    withdraw();
    await withdrawal.held();
    const reading = new Hold();
    reads.hold = { name: 'run', hold: reading };
    const reply = give(b, run_id, 'yes');
    await reading.held();
    withdrawal.letGo();
    reads.hold = undefined;
    reading.letGo();
    expect(await reply).toEqual(taken);
    expect(await answered(a, run_id)).toEqual(['Delete all?']);
  });

  // The simulation has found it (seed 7845 at 2778bd6).
  it.each([
    ['is given to the stored one', false],
    ['is refused for the moment, where the store cannot be read', true],
  ])('while another node had taken the run over unheard, %s', async (_, isDown) => {
    const { agent, end } = works();
    const { a, b, store, takeOver } = await twoNodes(agent);
    const run_id = await workingOn(a, store);
    store.losesNotifications = true;
    const ending = holdCommits(store, (write) => has('"ended"', write));
    end();
    await ending.held();
    await takeOver(run_id);
    await asked(store, run_id, 'Go on?');
    store.losesNotifications = false;
    if (isDown) {
      failOnce(store);
      expect(await give(b, run_id, 'yes')).toEqual([503, 'store_unavailable']);
    }
    expect(await give(b, run_id, 'yes')).toEqual(taken);
    ending.letGo();
    expect(await answered(a, run_id)).toEqual(['Go on?']);
  });

  it('is given to the stored one, where another process executes the run, and this one has not noticed', async () => {
    const { agent, end } = works();
    const store = new MemoryStore();
    const one = await engineWith([agent], store);
    const run_id = await begin(one, 'asks');
    while ((await store.run(run_id))?.status !== 'in-progress') await turn();
    await turns(10);
    const ending = holdCommits(store, (write) => has('"ended"', write));
    end();
    await ending.held();
    await engineWith([agent], store);
    await asked(store, run_id, 'Go on?');
    const outcome = answerOf(resume(one, run_id));
    await turns(20);
    ending.letGo();
    expect(await outcome).toBe('in-progress');
  });

  it('is refused at once, where the store has taken no write for some time', async () => {
    const { agent, withdraw } = withdraws(true);
    const store = new MemoryStore();
    const engine = await engineWith([agent], store, { requestTimeout: 200 });
    const run_id = await begun(engine, 'asks');
    const withdrawal = holdCommits(store, (write) => has('"withdrawn"', write));
    withdraw();
    await withdrawal.held();
    const { run } = store;
    store.run = () => new Promise(() => {});
    // Each reply waits for the store, until that has been away for `requestTimeout`.
    const atOnce = (): Promise<string> =>
      Promise.race([answerOf(resume(engine, run_id)), turns(20).then(() => 'it waits')]);
    while ((await atOnce()) === 'it waits') await turn();
    expect(await atOnce()).toBe('store_unavailable');
    store.run = run;
    withdrawal.letGo();
  });
});
