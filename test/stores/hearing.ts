import { isDeepStrictEqual } from 'node:util';
import type { RunNotification, Store } from '../../src/core/store.ts';

/** What a watcher has been told. */
export class Hearing {
  readonly #last = new Map<string, RunNotification>();
  #wake = (): void => {};
  missed = 0;
  end = async (): Promise<void> => {};

  static async of(store: Store): Promise<Hearing> {
    const hearing = new Hearing();
    if (store.watch === undefined) throw new Error('the store cannot be watched');
    hearing.end = await store.watch((moves) => hearing.#hear(moves));
    return hearing;
  }

  get runs(): string[] {
    return [...this.#last.keys()];
  }

  /** Resolves when it has been told that the run is there. */
  of(run_id: string, moved: Partial<RunNotification>): Promise<void> {
    return this.until(() => {
      const told = this.#last.get(run_id);
      return told !== undefined && isDeepStrictEqual({ ...told, ...moved }, told);
    });
  }

  async until(enough: () => boolean): Promise<void> {
    while (!enough()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #hear(moves: readonly RunNotification[] | undefined): void {
    if (moves === undefined) this.missed += 1;
    for (const one of moves ?? []) this.#last.set(one.run_id, one);
    this.#wake();
  }
}
