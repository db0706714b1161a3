import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import { encode } from '../../src/core/encode.ts';
import type { Batch } from '../../src/core/ports/run-store.ts';
import type { RunInput } from '../../src/core/request.ts';
import type { Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { append, fresh, type TestWrite } from '../stores/writes.ts';
import { turn } from '../support/turn.ts';

/** A durable agent that never ends, and the runs that it has begun. */
function worker() {
  const begun: string[] = [];
  const agent = defineAgent(
    { name: 'works', description: 'Works without end.' },
    (_, { run_id }) => {
      begun.push(run_id);
      return NEVER;
    },
    { durable: true },
  );
  return { agent, begun };
}

/** A run that a process left when its agent had begun. */
function leftOver(): TestWrite {
  const row = fresh({ agent_name: 'works', status: 'in-progress', tier: 'durable', snapshot: 2 });
  const { run_id, agent_name, session_id, created_at } = row;
  const run: Run = { run_id, agent_name, session_id, status: 'created', output: [], created_at };
  const lines = [
    encode({ type: 'run.created', run }),
    encode({ type: 'run.in-progress', run: { ...run, status: 'in-progress' } }),
  ];
  return append(row, lines);
}

/** A store that takes a while to read a run, and counts the runs that are read at once. */
class SlowReads extends MemoryStore {
  readonly #reading: string[] = [];
  most = 0;

  async #read<T>(run_id: string, read: () => Promise<T>): Promise<T> {
    this.#reading.push(run_id);
    this.most = Math.max(this.most, new Set(this.#reading).size);
    await turn();
    this.#reading.splice(this.#reading.indexOf(run_id), 1);
    return read();
  }

  override events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    return this.#read(run_id, () => super.events(run_id, after, limit));
  }

  override journal(run_id: string): Promise<string[]> {
    return this.#read(run_id, () => super.journal(run_id));
  }

  override input(run_id: string): Promise<RunInput | undefined> {
    return this.#read(run_id, () => super.input(run_id));
  }
}

describe('an engine that starts', () => {
  it('enters all runs that were left unfinished, more than a page of them, and reads few at once', async () => {
    const store = new SlowReads();
    const left = Array.from({ length: 1_001 }, leftOver);
    expect(new Set(await store.commit(left))).toEqual(new Set(['taken']));
    const { agent, begun } = worker();
    const engine = await startEngine([agent], store);
    while (begun.length < left.length) await turn();
    expect(begun.toSorted()).toEqual(left.map(({ row }) => row.run_id).toSorted());
    expect(store.most).toBeLessThanOrEqual(16);
    expect(engine.load.working).toBe(left.length);
    await engine.stop();
    // They are left for the next process.
    expect(engine.load.working).toBe(0);
    expect(await store.openRuns()).toMatchObject([{ status: 'in-progress', count: left.length }]);
  });
});
