import { setImmediate as turn } from 'node:timers/promises';
import { concat, map, merge, NEVER, type Observable, range } from 'rxjs';
import { expect, it } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import type { Batch } from '../../src/core/ports/run-store.ts';
import type { Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { engineOf } from '../support/engine.ts';
import { begin, runOf } from '../support/lives.ts';
import { textOf } from '../support/run-output.ts';

/** Remembers the events that were read of each run. */
class Read extends MemoryStore {
  readonly read = new Map<string, number>();

  override async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    const batches = await super.events(run_id, after, limit);
    const count = batches.reduce((sum, { lines }) => sum + lines.length, 0);
    this.read.set(run_id, (this.read.get(run_id) ?? 0) + count);
    return batches;
  }
}

const chars = 1_000_000;
const much = (): Observable<string> => range(0, 1_000).pipe(map(() => 'x'.repeat(chars / 1_000)));
const works = defineAgent({ name: 'works', description: 'Works on.' }, () => concat(much(), NEVER));
const asks = defineAgent({ name: 'asks', description: 'Asks at last.' }, (_, context) =>
  concat(much(), context.await('Go on?').pipe(map(() => 'end'))),
);

it('a list of runs is small, and reads at most one event of each run, however much live runs have said', async () => {
  const store = new Read();
  const engine = await engineOf([works, asks], store);
  const names = ['works', 'asks', 'works', 'asks', 'works'];
  for (const name of names) {
    const run_id = await begin(engine, name);
    // Created, in progress, the message and its parts; before a question the message is completed.
    const last = name === 'asks' ? 1_005 : 1_003;
    while (((await store.run(run_id))?.last ?? 0) < last) await turn();
  }
  store.read.clear();
  const { runs } = await engine.runs({}, undefined, 10);
  // A summary has the question of a run that awaits, and nothing of a run that works.
  expect([...store.read.values()]).toEqual([1, 1]);
  expect(runs.join().length).toBeLessThan(5_000);
  const listed = runs.map((text): Run => JSON.parse(text)).reverse();
  expect(listed.map(({ agent_name, status, output }) => [agent_name, status, output])).toEqual(
    names.map((name) => [name, name === 'asks' ? 'awaiting' : 'in-progress', []]),
  );
  expect(listed.map(({ await_request }) => await_request?.message.parts[0]?.content)).toEqual(
    names.map((name) => (name === 'asks' ? 'Go on?' : undefined)),
  );
  expect(textOf(await runOf(engine, listed[0]?.run_id ?? ''))).toHaveLength(chars);
});

it('a list reads one event of a run that has said much since it asked', async () => {
  const store = new Read();
  const busy = defineAgent({ name: 'busy', description: 'Asks, and works on.' }, (_, context) =>
    merge(context.await('Go on?').pipe(map(() => 'end')), much()),
  );
  const engine = await engineOf([busy], store);
  const run_id = await begin(engine, 'busy');
  while (((await store.run(run_id))?.last ?? 0) < 1_003) await turn();
  store.read.clear();
  const { runs } = await engine.runs({}, undefined, 10);
  expect(store.read.get(run_id)).toBe(1);
  expect(runs[0]).toContain('Go on?');
});
