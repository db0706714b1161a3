import { Value } from '@sinclair/typebox/value';
import { describe, expect, it } from 'vitest';
import type { RunFilter } from '../../../src/core/ports/run-lists.ts';
import type { Batch, RunRow } from '../../../src/core/ports/run-store.ts';
import { type Run, RunsResponse } from '../../../src/index.ts';
import { MemoryStore } from '../../../src/stores/memory/memory-store.ts';
import { agent, askOnce, echo } from '../../support/agents.ts';
import { listed } from '../../support/details.ts';
import { ask, serveApi } from '../../support/serve.ts';

const large = agent('large', () => 'x'.repeat(100_000));
const fails = agent('fails', () => {
  throw new Error('no');
});

describe('a list of runs', () => {
  it('has everything of each run but its output', async () => {
    const served = await serveApi([echo, askOnce, fails]);
    const made: Run[] = [];
    for (const name of ['echo', 'ask', 'fails']) made.unshift(await (await served.post('/runs', ask(name))).json());
    const body = await (await served.get('/runs')).json();
    expect(Value.Check(RunsResponse, body)).toBe(true);
    expect(body.runs).toEqual(made.map((run) => listed(run, 'hi')));
  });

  it('is small, however much output its runs have', async () => {
    const served = await serveApi([large]);
    const posted = Array.from({ length: 5 }, () => served.post('/runs', ask('large')));
    for (const response of await Promise.all(posted)) await response.text();
    const text = await (await served.get('/runs?limit=100')).text();
    expect(JSON.parse(text).runs).toHaveLength(5);
    expect(text.length).toBeLessThan(5 * 1_000);
  });

  it('answers HEAD as GET, without the body', async () => {
    const served = await serveApi([large]);
    await (await served.post('/runs', ask('large'))).text();
    const [get, head] = await Promise.all(
      (['GET', 'HEAD'] as const).map((method) => served.app.inject({ method, url: '/runs' })),
    );
    expect([head?.statusCode, head?.body]).toEqual([200, '']);
    expect(head?.headers['content-length']).toBe(get?.headers['content-length']);
    expect(Number(head?.headers['content-length'])).toBeLessThan(1_000);
  });
});

/** Removes final runs that it lists, before its caller reads any event of them. */
class Removing extends MemoryStore {
  removes = false;

  override async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    const rows = await super.runs(filter, before, limit);
    if (this.removes) {
      for (const { run_id } of rows) await this.remove(run_id);
      while (await this.sweep({ keys: '' }));
    }
    return rows;
  }
}

/** The last line of its damaged run is cut off. */
class Damaged extends MemoryStore {
  damaged = '';

  override async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    const batches = await super.events(run_id, after, limit);
    if (run_id !== this.damaged) return batches;
    const { last } = (await this.run(run_id)) ?? {};
    const cut = (line: string, id: number): string => (id === last ? line.slice(0, line.length / 2) : line);
    return batches.map(({ first, lines }) => ({ first, lines: lines.map((line, index) => cut(line, first + index)) }));
  }
}

describe('a list with a run that cannot be read', () => {
  const rowOf = ({ error: _, await_request: __, ...run }: Run) => listed(run, 'hi');

  it('has the row alone of one that is removed before its event is read', async () => {
    const store = new Removing();
    const served = await serveApi([echo, askOnce, fails], { store });
    const made: Run[] = [];
    for (const name of ['echo', 'fails', 'ask']) made.unshift(await (await served.post('/runs', ask(name))).json());
    const [asks, failed, echoed] = made;
    if (asks === undefined || failed === undefined || echoed === undefined) throw new Error('three runs were made');
    expect(failed.error).toBeDefined();
    store.removes = true;
    const response = await served.get('/runs');
    expect(response.status).toBe(200);
    const body = await response.json();
    expect(Value.Check(RunsResponse, body)).toBe(true);
    expect(body.runs).toEqual([listed(asks, 'hi'), rowOf(failed), listed(echoed, 'hi')]);
    expect((await (await served.get('/runs')).json()).runs).toEqual([listed(asks, 'hi')]);
  });

  it.each(['fails', 'ask'])('has the row alone of one whose last line is damaged: %s', async (name) => {
    const store = new Damaged();
    const served = await serveApi([echo, askOnce, fails], { store });
    const damaged: Run = await (await served.post('/runs', ask(name))).json();
    const whole: Run = await (await served.post('/runs', ask(name))).json();
    expect(damaged.error ?? damaged.await_request).toBeDefined();
    store.damaged = damaged.run_id;
    const response = await served.get('/runs');
    expect(response.status).toBe(200);
    const body = await response.json();
    expect(Value.Check(RunsResponse, body)).toBe(true);
    expect(body.runs).toEqual([listed(whole, 'hi'), rowOf(damaged)]);
  });
});
