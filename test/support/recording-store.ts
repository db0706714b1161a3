import type { Outcome, Store, Write } from '../../src/core/store.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';

/** A store that remembers its commits, so that a test can go back to any moment at which a process might have died. */
export class RecordingStore extends MemoryStore {
  readonly commits: Write[][] = [];

  override async commit(writes: readonly Write[]): Promise<Outcome[]> {
    this.commits.push(structuredClone([...writes]));
    return super.commit(writes);
  }

  /** What a disk would hold after the first `count` commits. */
  async after(count: number): Promise<Store> {
    const store = new MemoryStore();
    for (const writes of this.commits.slice(0, count)) await store.commit(structuredClone(writes));
    return store;
  }
}
