import type { Outcome, Write } from '../../src/core/ports/run-store.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';

/** A store that can never take the writes of which `rejects` is true; it takes all others. */
export class PickyStore extends MemoryStore {
  rejects: (write: Write) => boolean;
  rejected = 0;
  readonly #cause: string;

  constructor(rejects: (write: Write) => boolean, cause = 'no') {
    super();
    this.rejects = rejects;
    this.#cause = cause;
  }

  override async commit(writes: readonly Write[]): Promise<Outcome[]> {
    const refused = new Set(writes.filter((write) => this.rejects(write)));
    this.rejected += refused.size;
    const kept = await super.commit(writes.filter((write) => !refused.has(write)));
    return writes.map((write) =>
      refused.has(write) ? { rejected: new Error(this.#cause) } : (kept.shift() ?? 'fenced'),
    );
  }
}

/** Whether a write has an event of more characters. */
export const longerThan =
  (chars: number) =>
  ({ lines }: Write): boolean =>
    lines.some(({ length }) => length > chars);
