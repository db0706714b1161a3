import { concat, from, map, merge, mergeMap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { durable } from '../support/agents.ts';
import { engineOf } from '../support/engine.ts';
import { again, begin, eventsOf, toTheEnd } from '../support/lives.ts';

/** Steps side by side, one after the other and in the work of another, a tool, calls, questions in one of them, usage. */
const inner = durable('inner', async function* (input, { step, await: asks }) {
  yield await step('think', async () => `thought of ${input[0]?.parts[0]?.content};`);
  yield `${(await asks('Go on?')).message.parts[0]?.content};`;
});

const outer = durable('outer', (_, context) =>
  concat(
    from(['begins;', 'goes on;']),
    merge(
      context.step('left', async () => 'left;'),
      context.step('right', () => from(['right 1;', 'right 2;'])),
    ),
    from(
      (async function* () {
        const found = yield* context.tool('look', { for: 'it' }, async () => {
          context.usage({ tokens: 3 });
          return { found: await context.step('inside', async () => 'it') };
        });
        yield `${JSON.stringify(found)};`;
      })(),
    ),
    merge(context.call('inner', 'one'), context.call('inner', 'two')),
    context.await('Well?').pipe(map(({ message }) => `${message.parts[0]?.content};`)),
    from(['a', 'b']).pipe(mergeMap((name) => context.step(name, async () => `${name};`))),
  ),
);
const agents = [outer, inner];
const answer = (question: string): string => `yes to ${question}`;

/** What a run has said, whatever the order of branches side by side. */
const saidIn = ({ output }: { output: readonly { parts: readonly { content?: string | undefined }[] }[] }): string[] =>
  output
    .flatMap(({ parts }) => parts.map(({ content = '' }) => content))
    .join('')
    .split(/(?<=;)/)
    .sort();

async function repeated(engine: Engine, run_id: string, after: number) {
  const again = await engine.again(run_id, after);
  return toTheEnd(engine, again.run_id, answer);
}

describe('a run that repeats another one up to any of its events', () => {
  it('ends as that one did, with the same events up to there', async () => {
    const engine = await startEngine(agents, new RecordingStore());
    const first = await toTheEnd(engine, await begin(engine, 'outer'), answer);
    expect(first.run.status).toBe('completed');
    for (let after = 0; after <= first.events.length; after += 1) {
      const { run, events } = await repeated(engine, first.run.run_id, after);
      expect([after, run.error, run.status]).toEqual([after, undefined, 'completed']);
      expect(saidIn(run)).toEqual(saidIn(first.run));
      expect(run.usage).toEqual(first.run.usage);
      // The end of the last message and that of the run are one.
      const kept = Math.min(after, first.events.length - 2);
      const plain = (all: typeof events) => all.slice(0, kept).filter((event) => !('run' in event));
      expect(plain(events)).toEqual(plain(first.events));
    }
    await engine.stop();
  }, 60_000);

  it('ends as that one did after a crash at any of its commits', async () => {
    const engine = await startEngine(agents, new RecordingStore());
    const first = await toTheEnd(engine, await begin(engine, 'outer'), answer);
    await engine.stop();
    const { length } = first.events;
    for (const after of [Math.floor(length / 3), Math.floor(length / 2), length - 4]) {
      const store = new RecordingStore();
      const living = await startEngine(agents, store);
      const source = await toTheEnd(living, await begin(living, 'outer'), answer);
      const before = store.commits.length;
      const whole = await repeated(living, source.run.run_id, after);
      await living.stop();
      for (let commits = before + 1; commits <= store.commits.length; commits += 3) {
        const ended = await again(agents, store, commits, answer);
        expect(ended?.run).toMatchObject({ run_id: whole.run.run_id, status: 'completed' });
        expect(saidIn(ended?.run ?? { output: [] })).toEqual(saidIn(first.run));
      }
    }
  }, 60_000);

  it('ends as that one did where the first run goes on meanwhile', async () => {
    const engine = await engineOf(agents, new RecordingStore());
    const run_id = await begin(engine, 'outer');
    const cursor = await engine.openCursor(run_id, { until: 'settled' });
    for await (const _ of cursor);
    const { length } = await eventsOf(engine, run_id);
    const copy = await repeated(engine, run_id, length);
    const first = await toTheEnd(engine, run_id, answer);
    expect(saidIn(copy.run)).toEqual(saidIn(first.run));
  });
});
