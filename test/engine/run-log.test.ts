import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Outcome, RunRow, Write } from '../../src/core/ports/run-store.ts';
import { GroupCommit } from '../../src/engine/log/group-commit.ts';
import { RunLog } from '../../src/engine/log/run-log.ts';
import { endingWrite } from '../../src/engine/log/stored-run.ts';
import { withDeliveries } from '../../src/engine/webhooks/deliveries.ts';
import type { Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { append, fresh } from '../stores/writes.ts';

const newRow = (): RunRow => fresh({ status: 'in-progress' });

function setUp() {
  const store = new MemoryStore();
  const failures: unknown[] = [];
  const commits = new GroupCommit(store, {
    requestTimeout: 5_000,
    storeTimeout: 5_000,
    onFailure: (error) => failures.push(error),
  });
  const begin = (): RunLog => {
    const log = new RunLog(commits, newRow(), { input: [] });
    log.append('{"n":1}');
    return log;
  };
  const linesOf = async ({ run_id }: RunLog): Promise<string[]> =>
    (await store.events(run_id, 0, 100)).flatMap(({ lines }) => lines);
  return { store, commits, failures, begin, linesOf };
}

const final = {
  status: 'completed',
  status_at: '2026-01-01T00:00:01.000Z',
  finished_at: '2026-01-01T00:00:01.000Z',
  due: null,
} as const;

describe('the writes of a log', () => {
  const long = JSON.stringify('x'.repeat(20_000));
  /** The writes of the second commit. */
  async function writesOf(work: (log: RunLog) => void): Promise<readonly Write[]> {
    const { store, begin } = setUp();
    const log = begin();
    await log.flushed();
    const commit = vi.spyOn(store, 'commit');
    log.append('{"n":2}');
    work(log);
    await log.flushed();
    return commit.mock.calls.flatMap(([writes]) => writes);
  }

  it('have a long event apart from the events before it', async () => {
    const writes = await writesOf((log) => log.append(long));
    expect(writes.map(({ expect, lines }) => [expect, lines])).toEqual([
      [1, ['{"n":2}']],
      [2, [long]],
    ]);
  });

  it('have what is attached together with the next event, however long that is', async () => {
    const writes = await writesOf((log) => {
      log.attach({ history: ['/message'] });
      log.append(long, final);
    });
    expect(writes).toMatchObject([{ expect: 1, lines: ['{"n":2}', long], history: ['/message'] }]);
  });
});

it('takes more entries of its journal at once than a call may have arguments', async () => {
  const { store, begin } = setUp();
  const log = begin();
  const entries = Array.from({ length: 200_000 }, (_, n) => `${n}`);
  // The second list is added to the first one.
  for (const journal of [['"first"'], entries, ['"last"']]) log.attach({ journal });
  log.append('{"n":2}');
  await log.flushed();
  const kept = await store.journal(log.run_id);
  expect(kept).toHaveLength(entries.length + 2);
  expect([kept[0], kept[1], kept.at(-2), kept.at(-1)]).toEqual(['"first"', '0', '199999', '"last"']);
});

describe('the end of a log', () => {
  it('is set once, and writes in the same turn after the final event are ignored', async () => {
    const { store, begin, linesOf } = setUp();
    const log = begin();
    log.append('{"end":true}', final);
    log.append('{"late":true}');
    log.attach({ history: ['/late'], journal: ['{}'] });
    log.change({ status: 'cancelling', status_at: '2026-01-01T00:00:01.000Z' });
    log.release();
    await log.flushed();
    expect([log.outcome, log.final]).toEqual(['final', true]);
    expect(await linesOf(log)).toEqual(['{"n":1}', '{"end":true}']);
    expect(await store.session(log.row.session_id)).toMatchObject({ history: [] });
    expect(await store.journal(log.run_id)).toEqual([]);
  });

  it('is `fenced` if another execution has written, and its waiting callers get the error', async () => {
    const { store, begin } = setUp();
    const log = begin();
    await log.flushed();
    const row = await store.run(log.run_id);
    if (row === undefined) throw new Error('it was kept');
    await store.commit([{ row: { ...row, epoch: 2 }, from: 1, expect: 1, lines: [] }]);
    let closed = 0;
    log.onClosed(() => {
      closed += 1;
    });
    log.append('{"n":2}');
    await expect(log.flushed()).rejects.toMatchObject({ kind: 'conflict' });
    expect([log.outcome, log.readers, closed]).toEqual(['fenced', undefined, 1]);
  });

  it('raises the epoch with each status without an event, so that writes with an older row are fenced', async () => {
    const { store, begin } = setUp();
    const log = begin();
    await log.flushed();
    const before = await store.run(log.run_id);
    if (before === undefined) throw new Error('it was kept');
    log.change({ status: 'cancelling', status_at: '2026-01-01T00:00:01.000Z' });
    log.append('{"n":2}');
    await log.flushed();
    expect(await store.run(log.run_id)).toMatchObject({ epoch: 2, status: 'cancelling', last: 2 });
    expect(await store.commit([{ row: { ...before, epoch: 2 }, from: 1, expect: 1, lines: [] }])).toEqual(['fenced']);
  });
});

describe('a reply whose key is used meanwhile', () => {
  it('leaves the key to the earlier request, and the log goes on', async () => {
    const { store, begin, linesOf } = setUp();
    const log = begin();
    await log.flushed();
    const key = {
      scope: 'resume',
      key: 'k',
      hash: 'h',
      after: 1,
      created_at: '2026-01-01T00:00:00.000Z',
      fresh: '2025-01-01T00:00:00.000Z',
    };
    const other = newRow();
    await store.commit([{ row: other, expect: 0, input: [], lines: ['{}'], key: { ...key, run_id: other.run_id } }]);
    log.attach({ key: { ...key, run_id: log.run_id } });
    log.append('{"n":2}');
    const kept = log.flushed();
    log.append('{"n":3}');
    await kept;
    await log.flushed();
    expect(await linesOf(log)).toEqual(['{"n":1}', '{"n":2}', '{"n":3}']);
    expect(await store.key('resume', 'k')).toMatchObject({ run_id: other.run_id });
  });
});

describe('targets that change beside a log', () => {
  it('are found by its next change of status, and the log goes on without loss', async () => {
    const { store, begin, linesOf } = setUp();
    const log = begin();
    await log.flushed();
    const targets = '[{"url":"https://example.com/"}]';
    log.append('{"n":2}');
    expect(await store.compareAndSet(log.run_id, 'targets', null, targets)).toBe(true);
    await log.flushed();
    expect(log.row.targets).toBeNull();
    const asks = { status: 'awaiting', status_at: final.status_at, finished_at: null, due: null } as const;
    log.append('{"n":3}', asks);
    log.append('{"n":4}', { ...asks, status: 'in-progress' });
    const kept = log.flushed();
    log.append('{"n":5}', final);
    await kept;
    await log.flushed();
    expect(await linesOf(log)).toEqual([1, 2, 3, 4, 5].map((n) => `{"n":${n}}`));
    expect(await store.run(log.run_id)).toMatchObject({ targets, status: 'completed', last: 5 });
    expect([log.final, log.row.targets]).toEqual([true, targets]);
  });

  it('are found by a write of a run without an execution', async () => {
    const store = new MemoryStore();
    const first = append(fresh(), ['{}']);
    await store.commit([first]);
    const { run_id } = first.row;
    await store.compareAndSet(run_id, 'targets', null, '[{"url":"https://example.com/"}]');
    const reported = withDeliveries(store, () => final.status_at);
    const commits = new GroupCommit(reported, { requestTimeout: 5_000, storeTimeout: 5_000, onFailure: () => {} });
    const taken: string[] = [];
    const run: Run = { run_id, agent_name: 'echo', status: 'created', output: [], created_at: first.row.created_at };
    const end = endingWrite(first.row, run, final.finished_at);
    expect(await commits.commitOne(end, () => void taken.push(run_id))).toBe('taken');
    expect(taken).toEqual([run_id]);
    expect(await store.outbox.deliveries({ run_id }, undefined, 5)).toMatchObject([{ type: 'run.cancelled' }]);
  });
});

/**
 * A group commit that has begun with 50 logs, of which two fill a commit. The store fails the first twenty commits. Returns the
 * runs of the logs, and those that each commit and each failure was for.
 */
function beginFailing() {
  const rows = Array.from({ length: 50 }, newRow);
  const committed: string[][] = [];
  const failed: string[] = [];
  const store = {
    async commit(writes: readonly Write[]): Promise<Outcome[]> {
      committed.push(writes.map(({ row }) => row.run_id));
      if (committed.length <= 20) throw new Error('disk full');
      return writes.map(() => 'taken');
    },
  };
  const commits = new GroupCommit(store, { requestTimeout: 5_000, storeTimeout: 5_000, onFailure: () => {} });
  for (const row of rows) {
    commits.schedule({
      backlog: 2 * 1024 * 1024,
      takePending: () => [{ row, expect: 0, lines: [], input: [] }],
      onCommitted() {},
      onCommitFailed: () => failed.push(row.run_id),
    });
  }
  return { commits, run_ids: rows.map(({ run_id }) => run_id), committed, failed };
}

describe('a group commit', () => {
  it('passes every log its outcomes, although a reader of one of them throws', async () => {
    const { begin, failures } = setUp();
    const [first, second] = [begin(), begin()];
    await Promise.all([first.flushed(), second.flushed()]);
    first.readers?.add({
      seen: 1,
      wake: () => {
        throw new Error('a broken reader');
      },
    });
    first.append('{"n":2}');
    second.append('{"n":2}');
    await second.flushed();
    expect([first.durable, second.durable]).toEqual([2, 2]);
    expect(failures).toEqual([expect.objectContaining({ message: 'a broken reader' })]);
  });

  it('retries failed commits, and isolates the log whose writes the store never takes', async () => {
    class Picky extends MemoryStore {
      commits = 0;

      override async commit(writes: readonly Write[]): Promise<Outcome[]> {
        this.commits += 1;
        if (writes.some(({ lines }) => lines.includes('"bad"'))) throw new Error('disk I/O error');
        return super.commit(writes);
      }
    }
    const store = new Picky();
    const failures: unknown[] = [];
    const options = {
      requestTimeout: 5_000,
      storeTimeout: 300,
      onFailure: (error: unknown) => void failures.push(error),
    };
    // The clock stands still: a slow machine would give up before the logs are tried one by one.
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const commits = new GroupCommit(store, options);
    const logs = Array.from({ length: 50 }, () => new RunLog(commits, newRow(), { input: [] }));
    for (const [n, log] of logs.entries()) log.append(n === 17 ? '"bad"' : '"good"');
    const flushed = logs.map((log) => log.flushed());
    await Promise.all(flushed.toSpliced(17, 1));
    vi.advanceTimersByTime(301);
    const ends = await Promise.allSettled(flushed);
    expect(ends.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([17]);
    expect([logs[17]?.outcome, failures.length]).toEqual(['failed', 1]);
    await commits.drained();
    expect(store.commits).toBeLessThan(100);
  });

  it('go on after a listener that throws, whose error is reported', async () => {
    const failures: unknown[] = [];
    const error = new Error('of the listener');
    const options = {
      requestTimeout: 5_000,
      storeTimeout: 5_000,
      onFailure: (one: unknown) => failures.push(one),
    };
    const commits = new GroupCommit(new MemoryStore(), options);
    commits.events.on('committed', () => {
      throw error;
    });
    for (const expected of [1, 2]) {
      const log = new RunLog(commits, newRow(), { input: [] });
      log.append('{}');
      await log.flushed();
      await commits.drained();
      expect(failures).toEqual(Array(expected).fill(error));
    }
  });

  it('gives up no log before `storeTimeout` whose turn does not come because the store fails', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    // The process has run for longer than `storeTimeout`.
    vi.advanceTimersByTime(5_001);
    const { commits, run_ids, committed, failed } = beginFailing();
    await commits.drained();
    expect(failed).toEqual([]);
    expect(committed.slice(20).flat().toSorted()).toEqual(run_ids);
  });

  it('tries first the logs that a round has skipped', async () => {
    const { commits, run_ids, committed } = beginFailing();
    await commits.drained();
    expect([committed[0], committed[20]]).toEqual([run_ids.slice(0, 2), run_ids.slice(40, 42)]);
  });

  it('splits many writes into commits of at most 500', async () => {
    const sizes: number[] = [];
    class Counting extends MemoryStore {
      override commit(writes: readonly Write[]): Promise<Outcome[]> {
        sizes.push(writes.length);
        return super.commit(writes);
      }
    }
    const options = { requestTimeout: 5_000, storeTimeout: 5_000, onFailure: () => {} };
    const commits = new GroupCommit(new Counting(), options);
    const logs = Array.from({ length: 1_200 }, () => new RunLog(commits, newRow(), { input: [] }));
    for (const log of logs) log.append('{}');
    await Promise.all(logs.map((log) => log.flushed()));
    expect(sizes).toEqual([500, 500, 200]);
  });
});

describe('a group commit with an interval', () => {
  /** A store that counts commits, and logs in it that are at work. */
  async function paced(interval: number) {
    const commits: (readonly Write[])[] = [];
    class Counting extends MemoryStore {
      override commit(writes: readonly Write[]): Promise<Outcome[]> {
        commits.push(writes);
        return super.commit(writes);
      }
    }
    const options = { interval, requestTimeout: 5_000, storeTimeout: 5_000, onFailure: () => {} };
    const group = new GroupCommit(new Counting(), options);
    const logs = Array.from({ length: 3 }, () => new RunLog(group, newRow(), { input: [] }));
    for (const log of logs) log.append('{"n":1}');
    await Promise.all(logs.map((log) => log.flushed()));
    commits.length = 0;
    return { commits, logs };
  }
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

  it('commits the tokens of several turns and runs together', async () => {
    const { commits, logs } = await paced(60_000);
    for (let n = 2; n < 6; n += 1) {
      for (const log of logs) log.append(`{"n":${n}}`);
      await turn();
    }
    expect(commits).toEqual([]);
    await logs[0]?.flushed();
    expect(commits.map((writes) => writes.map(({ lines }) => lines.length))).toEqual([[4, 4, 4]]);
    expect(logs.map(({ durable }) => durable)).toEqual([5, 5, 5]);
  });

  it.each<[string, (log: RunLog) => void]>([
    ['a change of status', (log) => log.append('{"n":3}', final)],
    ['a change of the row', (log) => log.change({ attempts: 1 })],
    ['data that belongs to the session', (log) => log.attach({ history: ['/resources/1'] })],
    ['an event that is for a hurry', (log) => log.hurry()],
    ['what something waits for', (log) => void log.flushed()],
    ['more than a model says in that time', (log) => log.append(JSON.stringify('x'.repeat(5_000)))],
  ])('commits %s at once, with the tokens before it', async (_, work) => {
    const { commits, logs } = await paced(60_000);
    const [log] = logs;
    if (log === undefined) throw new Error('there is no log');
    log.append('{"n":2}');
    await turn();
    expect(commits).toEqual([]);
    work(log);
    await turn();
    expect(commits).toHaveLength(1);
    expect(log.durable).toBeGreaterThanOrEqual(2);
  });

  it('commits tokens when the interval is over', async () => {
    const { commits, logs } = await paced(5);
    logs[0]?.append('{"n":2}');
    await expect.poll(() => commits.length).toBe(1);
    expect(logs[0]?.durable).toBe(2);
  });
});

describe('a group commit with a listener that throws', () => {
  const broken = new Error('a listener is broken');
  const throwBroken = (): never => {
    throw broken;
  };

  it('commits one write as without it: the write is taken, and its readers are woken', async () => {
    const { commits, failures } = setUp();
    commits.events.on('committed', throwBroken);
    const onTaken = vi.fn();
    expect(await commits.commitOne(append(newRow(), ['{"n":1}']), onTaken)).toBe('taken');
    expect(onTaken).toHaveBeenCalledOnce();
    expect(failures).toEqual([broken]);
  });

  it('repeats a failed commit, and gives a request the error of the store', async () => {
    const { commits, store, failures, begin, linesOf } = setUp();
    commits.events.on('failed', throwBroken);
    const away = new Error('the store is away');
    vi.spyOn(store, 'commit').mockRejectedValueOnce(away).mockRejectedValueOnce(away);
    await expect(commits.commitOne(append(newRow(), ['{"n":1}']), () => {})).rejects.toMatchObject({ cause: away });
    const log = begin();
    await log.flushed();
    expect(await linesOf(log)).toEqual(['{"n":1}']);
    expect(failures).toEqual([broken, broken, away]);
  });
});
