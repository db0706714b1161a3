import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { fail } from '../../src/core/errors.ts';
import type { RunFilter } from '../../src/core/ports/run-lists.ts';
import type { RunRow } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import type { ChangeEvent, ChangeReader } from '../../src/engine/changes/change-reader.ts';
import { RunChanges } from '../../src/engine/changes/run-changes.ts';
import { defaultLimits } from '../../src/engine/limits.ts';
import { Followed } from '../../src/engine/store/followed.ts';
import type { RunStatus } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { openStore } from '../../src/stores/open.ts';
import { append, fresh } from '../stores/writes.ts';
import { Hold } from '../support/hold.ts';
import { turn as settled } from '../support/turn.ts';

/** A store of which the test knows the reads. */
class CountingStore extends MemoryStore {
  readonly read: string[] = [];
  listReads = 0;
  available = true;
  /** What lists wait for. */
  hold: Hold | undefined;
  /** Pages of changed runs until the store is away for a moment. */
  pagesUntilFailure = Number.POSITIVE_INFINITY;

  override async run(run_id: string): Promise<RunRow | undefined> {
    this.read.push(run_id);
    return super.run(run_id);
  }

  override async runsByStatusTime(...asked: Parameters<MemoryStore['runsByStatusTime']>): Promise<RunRow[]> {
    if (this.pagesUntilFailure === 0) {
      this.pagesUntilFailure = Number.POSITIVE_INFINITY;
      throw fail('store_unavailable');
    }
    this.pagesUntilFailure -= 1;
    return super.runsByStatusTime(...asked);
  }

  override async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    this.listReads += 1;
    await this.hold?.come();
    if (!this.available) throw fail('store_unavailable');
    return super.runs(filter, before, limit);
  }
}

let store: CountingStore;
let failures: unknown[];
const time = Date.parse('2026-01-01T00:10:00.000Z');

beforeEach(() => {
  vi.useFakeTimers({ now: time, toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  store = new CountingStore();
  failures = [];
});
afterEach(() => {
  vi.useRealTimers();
  expect(failures).toEqual([]);
});

const changesOf = (shared = false, of: Store = store): RunChanges =>
  new RunChanges(of, {
    limits: defaultLimits,
    shared,
    followed: new Followed(),
    now: () => new Date().toISOString(),
    onFailure: (error) => failures.push(error),
  });

/** Writes a run's next status, as another node would. */
async function write(row: RunRow, status: RunStatus, ends = false, to: Store = store): Promise<RunRow> {
  const last = row.last + 1;
  const status_at = new Date().toISOString();
  const next = append({ ...row, status, status_at, snapshot: last, finished_at: ends ? status_at : null }, ['{}']);
  expect(await to.commit([next])).toEqual(['taken']);
  return next.row;
}
const notification = ({ run_id, epoch, last }: RunRow, changed = true) => ({
  run_id,
  epoch,
  last,
  final: false,
  changed,
  forwarded: false,
  waits: false,
});

/** Reads in the background, so that a test can look at what came. */
class Reading {
  readonly events: ChangeEvent[] = [];

  constructor(reader: ChangeReader) {
    void this.#read(reader);
  }

  get statuses(): string[] {
    return this.events.flatMap(({ type, data }) => (type === 'run' ? [JSON.parse(data).run.status] : [type]));
  }

  async #read(reader: ChangeReader): Promise<void> {
    for await (const events of reader) this.events.push(...events);
  }
}

/** This node learns that its write of a row was committed. */
const learn = (changes: RunChanges, row: RunRow): void =>
  changes.onCommitted([{ row, expect: row.last, lines: [] }], ['taken']);

/** A reader that has begun, and has to begin again while the store is unavailable. */
async function resetWhileAway(changes: RunChanges) {
  const reader = await changes.open({}, { limit: 20 });
  const reading = new Reading(reader);
  await settled();
  store.available = false;
  reader.reset();
  await settled();
  return { reader, reading };
}

describe('a reader of changed runs', () => {
  it('that is slow gets only the newest state of each run', async () => {
    const changes = changesOf();
    const reader = await changes.open({}, { limit: 20 });
    let row = fresh();
    for (const status of ['created', 'in-progress', 'awaiting', 'in-progress', 'completed'] as const) {
      row = await write(row, status, status === 'completed');
      learn(changes, row);
    }
    const reading = new Reading(reader);
    await settled();
    expect(reading.statuses).toEqual(['ready', 'completed']);
    reader.close();
  });

  it('begins again with the newest runs when too many wait for it', async () => {
    const changes = changesOf();
    const reader = await changes.open({}, { limit: 2 });
    for (let n = 0; n < 1_001; n += 1) {
      const row = await write(fresh(), 'created');
      learn(changes, row);
    }
    const reading = new Reading(reader);
    await settled();
    expect(reading.statuses).toEqual(['ready', 'reset', 'created', 'created', 'ready']);
    reader.close();
  });

  it('is told of no write that only appends, and of none that was refused', async () => {
    const changes = changesOf();
    const reading = new Reading(await changes.open({}, { limit: 20 }));
    const row = await write(fresh(), 'in-progress');
    changes.onCommitted([{ row, expect: row.last, lines: [], grown: true }], ['taken']);
    changes.onCommitted([{ row, expect: row.last, lines: [] }], ['fenced']);
    await settled();
    expect(reading.statuses).toEqual(['ready']);
    await changes.stop();
  });

  it('waits for a store that is unavailable when it has to begin again', async () => {
    const changes = changesOf();
    const { reader, reading } = await resetWhileAway(changes);
    expect(reading.statuses).toEqual(['ready']);
    store.available = true;
    await vi.advanceTimersByTimeAsync(500);
    expect(reading.statuses).toEqual(['ready', 'reset', 'ready']);
    reader.close();
  });

  it('asks a store that is unavailable no sooner because runs change', async () => {
    const changes = changesOf();
    const { reader, reading } = await resetWhileAway(changes);
    const before = store.listReads;
    for (let n = 0; n < 50; n += 1) {
      const row = await write(fresh(), 'created');
      learn(changes, row);
      await settled();
    }
    expect(store.listReads).toBe(before);
    store.available = true;
    await vi.advanceTimersByTimeAsync(500);
    await settled();
    expect(reading.statuses.at(1)).toBe('reset');
    reader.close();
  });

  it('begins anew where its client reconnects between `reset` and `ready`', async () => {
    for (let n = 0; n < 3; n += 1) await write(fresh(), 'completed', true);
    vi.setSystemTime(time + 3_600_000);
    const changes = changesOf();
    const reader = await changes.open({}, { limit: 20 });
    const batches = reader[Symbol.asyncIterator]();
    let position: number | undefined;
    let seen: string[] = [];
    const readUntil = async (type: string): Promise<void> => {
      while (!seen.includes(type)) {
        for (const event of (await batches.next()).value ?? []) {
          position = event.position ?? position;
          seen.push(event.type);
        }
      }
    };
    await readUntil('ready');
    reader.reset();
    seen = [];
    await readUntil('reset');
    expect(seen).toEqual(['reset']);
    reader.close();
    // As the request with this position: 0 is the beginning.
    const again = await changes.open({}, { limit: 20, after: position || undefined });
    const reading = new Reading(again);
    await settled();
    expect(reading.statuses).toEqual(['completed', 'completed', 'completed', 'ready']);
    again.close();
  });

  it('with a position waits for a store that is away between two pages', async () => {
    for (let n = 0; n < 600; n += 1) await write(fresh(), 'in-progress');
    store.pagesUntilFailure = 1;
    const changes = changesOf();
    const reader = await changes.open({}, { limit: 20, after: time });
    const reading = new Reading(reader);
    await vi.advanceTimersByTimeAsync(500);
    await settled();
    expect(store.pagesUntilFailure).toBe(Number.POSITIVE_INFINITY);
    expect([reading.statuses.length, reading.statuses.at(-1)]).toEqual([601, 'ready']);
    reader.close();
  });

  it('gets no pending state that is older than the one that the store has', async () => {
    const changes = changesOf();
    const reader = await changes.open({}, { limit: 20 });
    const reading = new Reading(reader);
    await settled();
    const first = await write(fresh(), 'in-progress');
    const second = await write(first, 'completed', true);
    reader.reset();
    // This node learns of the first write when the store has the second one already.
    learn(changes, first);
    await settled();
    learn(changes, second);
    await settled();
    expect(reading.statuses).toEqual(['ready', 'reset', 'completed', 'ready', 'completed']);
    reader.close();
  });

  it('does not begin again once it is closed', async () => {
    await write(fresh(), 'completed', true);
    const changes = changesOf();
    const reader = await changes.open({}, { limit: 20 });
    const batches = reader[Symbol.asyncIterator]();
    await batches.next();
    await batches.next();
    const list = new Hold();
    store.hold = list;
    const before = store.listReads;
    reader.reset();
    const next = batches.next();
    await list.held();
    expect(store.listReads).toBe(before + 1);
    reader.close();
    list.letGo();
    expect((await next).done).toBe(true);
  });

  it('is refused while the store is unavailable, and leaves nothing behind', async () => {
    const changes = changesOf(true);
    store.available = false;
    await expect(changes.open({}, { limit: 20 })).rejects.toMatchObject({ kind: 'store_unavailable' });
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('the changes of a shared store', () => {
  it('are read in batches after notifications, once each', async () => {
    const changes = changesOf(true);
    const reader = await changes.open({}, { limit: 20 });
    const reading = new Reading(reader);
    const rows = await Promise.all(Array.from({ length: 300 }, () => write(fresh(), 'in-progress')));
    for (const row of rows) for (let again = 0; again < 3; again += 1) changes.onNotifications([notification(row)]);
    changes.onNotifications([notification(await write(fresh(), 'in-progress'), false)]);
    await vi.advanceTimersByTimeAsync(200);
    expect(store.read).toHaveLength(200);
    await vi.advanceTimersByTimeAsync(200);
    expect(store.read.toSorted()).toEqual(rows.map(({ run_id }) => run_id).toSorted());
    changes.onNotifications(rows.map((row) => notification(row)));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(store.read).toHaveLength(300);
    expect(reading.statuses).toEqual(['ready', ...rows.map(() => 'in-progress')]);
    reader.close();
  });

  it('are found by a comparison when all notifications were lost, each change once', async () => {
    const old = await write(fresh({ created_at: new Date(time - 600_000).toISOString() }), 'awaiting');
    const untouched = await write(fresh({ created_at: new Date(time - 600_000).toISOString() }), 'in-progress');
    const changes = changesOf(true);
    const reader = await changes.open({ status: 'awaiting' }, { limit: 20 });
    const all = new Reading(await changes.open({}, { limit: 1 }));
    const reading = new Reading(reader);
    await write(old, 'completed', true);
    const brief = await write(await write(fresh(), 'in-progress'), 'failed', true);
    await vi.advanceTimersByTimeAsync(defaultLimits.pollInterval);
    expect(reading.statuses).toEqual(['awaiting', 'ready', 'completed']);
    await vi.advanceTimersByTimeAsync(3 * defaultLimits.pollInterval);
    expect(reading.statuses).toEqual(['awaiting', 'ready', 'completed']);
    expect(all.events.filter(({ data }) => data.includes(brief.run_id))).toHaveLength(1);
    const about = all.events.filter(({ data }) => data.includes(untouched.run_id));
    expect(about.filter(({ position }) => position !== undefined)).toEqual([]);
    await changes.stop();
  });

  it.each([
    ['memory:', 10_001],
    ['sqlite::memory:', 1_001],
  ])('are read alone in %s, beside %d runs that await', async (url, count) => {
    const many = await openStore(url);
    const long_ago = new Date(time - 3_600_000).toISOString();
    const awaiting = { status: 'awaiting', status_at: long_ago, created_at: long_ago } as const;
    await many.commit(Array.from({ length: count }, () => append(fresh(awaiting), ['{}'])));
    await write(fresh(), 'in-progress', false, many);
    const all = vi.spyOn(many, 'unfinished');
    const found = vi.spyOn(many, 'runsByStatusTime');
    const changes = changesOf(true, many);
    const reading = new Reading(await changes.open({}, { limit: 20, after: time }));
    await settled();
    expect(reading.statuses).toEqual(['in-progress', 'ready']);
    // Another node writes, and its notification is lost.
    vi.setSystemTime(Date.now() + 60_000);
    await write(fresh(), 'awaiting', false, many);
    await vi.advanceTimersByTimeAsync(defaultLimits.pollInterval);
    expect(reading.statuses).toEqual(['in-progress', 'ready', 'awaiting']);
    expect(all).not.toHaveBeenCalled();
    const pages = await Promise.all(found.mock.results.map(({ value }) => value));
    expect(Math.max(...pages.map((rows) => rows.length))).toBeLessThan(3);
    await changes.stop();
    await many.close();
  });

  it('are read although one of the runs can never be read', async () => {
    const changes = changesOf(true);
    const reading = new Reading(await changes.open({}, { limit: 20 }));
    const rows: RunRow[] = [];
    for (let n = 0; n < 40; n += 1) rows.push(await write(fresh(), 'created'));
    const { run } = store;
    store.run = (run_id) =>
      run_id === rows[0]?.run_id ? Promise.reject(new Error('damaged')) : run.call(store, run_id);
    changes.onNotifications(rows.map((row) => notification(row)));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reading.statuses).toEqual(['ready', ...Array(39).fill('created')]);
    // Once at a time.
    expect(failures.length).toBeLessThanOrEqual(5);
    expect(new Set(failures.splice(0).map(String))).toEqual(new Set(['Error: damaged']));
    await changes.stop();
  });

  it('are compared soon after notifications may have been missed', async () => {
    const changes = changesOf(true);
    const reading = new Reading(await changes.open({}, { limit: 20 }));
    await write(fresh({ created_at: new Date().toISOString() }), 'created');
    changes.onNotifications(undefined);
    await vi.advanceTimersByTimeAsync(200);
    expect(reading.statuses).toEqual(['ready', 'created']);
    await changes.stop();
  });

  it('cost nothing without readers: no timer, no read, no memory of runs', async () => {
    const changes = changesOf(true);
    const [one, other] = [await changes.open({}, { limit: 1 }), await changes.open({}, { limit: 1 })];
    expect(vi.getTimerCount()).toBe(2);
    one.close();
    one.close();
    expect(vi.getTimerCount()).toBe(2);
    other.close();
    expect(vi.getTimerCount()).toBe(0);
    changes.onNotifications([notification(await write(fresh(), 'created'))]);
    changes.onNotifications(undefined);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(store.read).toEqual([]);
    const reading = new Reading(await changes.open({}, { limit: 20 }));
    await settled();
    expect(reading.statuses).toEqual(['created', 'ready']);
    await changes.stop();
    expect(vi.getTimerCount()).toBe(0);
  });
});
