import { beforeEach, describe, expect, it } from 'vitest';
import type { ChangeEvent, ChangeReader } from '../../src/engine/changes/change-reader.ts';
import { RunChanges } from '../../src/engine/changes/run-changes.ts';
import { defaultLimits } from '../../src/engine/limits.ts';
import { Followed } from '../../src/engine/store/followed.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { append, fresh, type TestWrite } from '../stores/writes.ts';

/** A store that makes rows of their own for each read, as a database does, and counts the reads of logs. */
class CopyingStore extends MemoryStore {
  logReads = 0;

  override async runs(...asked: Parameters<MemoryStore['runs']>): ReturnType<MemoryStore['runs']> {
    return structuredClone(await super.runs(...asked));
  }

  override async events(...asked: Parameters<MemoryStore['events']>): ReturnType<MemoryStore['events']> {
    this.logReads += 1;
    return super.events(...asked);
  }
}

let store: CopyingStore;
beforeEach(() => {
  store = new CopyingStore();
});

const openChanges = (): RunChanges =>
  new RunChanges(store, {
    limits: defaultLimits,
    shared: false,
    followed: new Followed(),
    now: () => new Date().toISOString(),
    onFailure: (error) => {
      throw error;
    },
  });

/** The write of a run that asks; its log has to be read for its question. */
const asking = (question: string): TestWrite => {
  const event = JSON.stringify({ type: 'run.awaiting', run: { await_request: { message: question } } });
  return append(fresh({ status: 'awaiting', snapshot: 1 }), [event]);
};

/** A reader of runs, which a test reads up to `ready`, and then one batch after the other. */
class NewReader {
  readonly batches: (readonly ChangeEvent[])[] = [];
  readonly close: () => void;
  readonly #iterator: AsyncIterator<readonly ChangeEvent[]>;

  private constructor(reader: ChangeReader) {
    this.#iterator = reader[Symbol.asyncIterator]();
    this.close = () => reader.close();
  }

  static async open(changes: RunChanges, limit = 100): Promise<NewReader> {
    return new NewReader(await changes.open({}, { limit }));
  }

  /** The events before `ready`. */
  async newest(): Promise<ChangeEvent[]> {
    while (this.batches.at(-1)?.at(-1)?.type !== 'ready') await this.next();
    return this.batches.flat().slice(0, -1);
  }

  async next(): Promise<readonly ChangeEvent[]> {
    const { value } = await this.#iterator.next();
    this.batches.push(value);
    return value;
  }
}

const questionsOf = (events: readonly ChangeEvent[]): string[] =>
  events.map(({ data }) => JSON.parse(data).run.await_request.message);

describe('the text of a run', () => {
  it('is made once for hundreds of readers, when they begin and when it changes', async () => {
    for (let n = 0; n < 100; n += 1) await store.commit([asking(`Q${n}`)]);
    const changes = openChanges();
    const readers: NewReader[] = [];
    for (let n = 0; n < 20; n += 1) {
      const opened = await Promise.all(Array.from({ length: 10 }, () => NewReader.open(changes)));
      for (const given of await Promise.all(opened.map((reader) => reader.newest()))) expect(given).toHaveLength(100);
      readers.push(...opened);
    }
    expect(store.logReads).toBe(100);
    const late = asking('And now?');
    changes.onCommitted([late], await store.commit([late]));
    const given = await Promise.all(readers.map((reader) => reader.next()));
    expect(given.flatMap(questionsOf)).toEqual(readers.map(() => 'And now?'));
    expect(store.logReads).toBe(101);
    await changes.stop();
  });

  it('is kept below 8 MB of texts, until the last reader goes', async () => {
    for (let n = 0; n < 40; n += 1) await store.commit([asking(`${n} `.padEnd(300_000, 'x'))]);
    const changes = openChanges();
    const first = await NewReader.open(changes);
    expect(await first.newest()).toHaveLength(40);
    const readsOf = async (limit: number): Promise<number> => {
      const before = store.logReads;
      const reader = await NewReader.open(changes, limit);
      expect(await reader.newest()).toHaveLength(limit);
      reader.close();
      return store.logReads - before;
    };
    // 27 texts of 300 kB are below 8 MB. The newest were read last.
    expect(await readsOf(27)).toBe(0);
    // The oldest were discarded, and take the place of what was read longest ago.
    expect(await readsOf(40)).toBe(40);
    first.close();
    expect(await readsOf(27)).toBe(27);
    await changes.stop();
  });

  it('is read only when a reader asks for it: of long ones it has a batch, and what is read at once', async () => {
    const question = 'x'.repeat(300_000);
    const writes = Array.from({ length: 20 }, () => asking(question));
    for (const write of writes) await store.commit([write]);
    const changes = openChanges();
    const reader = await NewReader.open(changes);
    expect(store.logReads).toBe(8);
    const given = await reader.newest();
    expect(reader.batches.map(({ length }) => length)).toEqual([4, 4, 4, 4, 4, 1]);
    expect(given.map(({ data }) => JSON.parse(data).run.run_id)).toEqual(writes.map(({ row }) => row.run_id));
    expect(new Set(questionsOf(given))).toEqual(new Set([question]));
    expect(store.logReads).toBe(20);
    await changes.stop();
  });
});
