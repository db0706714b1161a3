import { concat, from, map, type Observable, of } from 'rxjs';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type AgentContext, defineAgent } from '../../src/core/agent.ts';
import { foldStored } from '../../src/engine/log/stored-run.ts';
import type { AwaitResumeInput } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { atRest, begin, runOf, toTheEnd } from '../support/lives.ts';
import { turn } from '../support/turn.ts';

const words = (count: number): string[] => Array.from({ length: count }, (_, n) => `${n} `);
const yes: AwaitResumeInput = { type: 'message', message: { parts: [{ content: 'yes' }] } };
const limits = { passivateAfter: 1, sweepInterval: 2 };
const ask = (context: AgentContext, text: string): Observable<string> => context.await(text).pipe(map(() => 'thanks '));

/** Says as many words before each of two questions. */
const talkative = (count: number) =>
  defineAgent(
    { name: 'talkative', description: 'Says much.' },
    (_, context) =>
      concat(from(words(count)), ask(context, 'one?'), from(words(count)), ask(context, 'two?'), of('end')),
    { durable: true },
  );

/** A run that rests, whose store another process opens. */
async function resting(count: number) {
  const store = new MemoryStore();
  const first = await startEngine([talkative(count)], store, limits);
  const run_id = await begin(first, 'talkative');
  await atRest(store, run_id);
  await first.stop();
  const engine = await startEngine([talkative(count)], store, limits);
  onTestFinished(() => engine.stop());
  return { store, run_id, engine };
}

/** The cursors at which a log is read. */
const readsOf = (store: MemoryStore): number[] => vi.mocked(store.events).mock.calls.map(([, after]) => after);

/** The Run as all events of its log give it. */
async function foldedWhole(store: MemoryStore, run_id: string) {
  const row = await store.run(run_id);
  if (row === undefined) throw new Error('it is in the store');
  vi.spyOn(store, 'resources').mockResolvedValue([undefined]);
  const run = await foldStored(store, row);
  vi.mocked(store.resources).mockRestore();
  return run;
}

it('a run with a long log that rests is read without its log, after a restart as well', async () => {
  const { store, run_id, engine } = await resting(1_100);
  vi.spyOn(store, 'events');
  const run = await runOf(engine, run_id);
  expect(readsOf(store)).toEqual([]);
  expect(run).toEqual(await foldedWhole(store, run_id));
  expect(run.await_request?.message.parts[0]?.content).toBe('one?');
});

it('a run goes on from its checkpoint, and its next rest replaces that', async () => {
  const { store, run_id, engine } = await resting(1_100);
  const before = (await store.run(run_id))?.last ?? 0;
  await engine.resume(run_id, yes);
  const isAskedAgain = async () => (await runOf(engine, run_id)).await_request?.message.parts[0]?.content === 'two?';
  while (!(await isAskedAgain())) await turn();
  await atRest(store, run_id);
  vi.spyOn(store, 'events');
  const run = await runOf(engine, run_id);
  expect(readsOf(store)).toEqual([]);
  expect(run).toEqual(await foldedWhole(store, run_id));
  expect(run.questions).toHaveLength(2);
  expect((await store.run(run_id))?.last).toBeGreaterThan(before);
  await engine.resume(run_id, yes);
  const { run: ended } = await toTheEnd(engine, run_id);
  const text = ended.output.flatMap(({ parts }) => parts.map(({ content }) => content)).join('');
  const said = words(1_100).join('');
  expect(text === `${said}thanks ${said}thanks end`).toBe(true);
});

it('a state of the run before its checkpoint is folded from its first event', async () => {
  const { store, run_id, engine } = await resting(1_100);
  const row = await store.run(run_id);
  const earlier: { output: unknown[] } = JSON.parse(await engine.runAt(run_id, 3));
  expect(row?.last).toBeGreaterThan(3);
  expect(earlier.output).toHaveLength(1);
});

it('a checkpoint is no resource for clients, and none is made for a short log', async () => {
  for (const [count, made] of [
    [1_100, 1],
    [200, 0],
  ] as const) {
    const { store, run_id, engine } = await resting(count);
    const id = `${run_id.slice(0, 14)}8${run_id.slice(15)}`;
    expect((await store.resources([id])).filter((one) => one !== undefined)).toHaveLength(made);
    await expect(engine.resource(id)).rejects.toMatchObject({ kind: 'resource_unknown' });
  }
});
