import type { MemoryLog } from './log.ts';

/**
 * Packs logs once the readers of this turn of the event loop have been told of their events. For a short run, packing
 * takes as long as the rest of its last commit.
 */
export class LatePacking {
  #logs: MemoryLog[] = [];

  add(log: MemoryLog): void {
    this.#logs.push(log);
    if (this.#logs.length === 1) setImmediate(this.#pack);
  }

  readonly #pack = (): void => {
    for (const log of this.#logs) log.pack();
    this.#logs = [];
  };
}
