import { isDeepStrictEqual } from 'node:util';
import type { RunNotification, Store } from '../../src/core/store.ts';

/** Records the notifications that a store sends to one subscriber. */
export class NotificationRecorder {
  readonly #last = new Map<string, RunNotification>();
  #wake = (): void => {};
  missed = 0;
  end = async (): Promise<void> => {};

  static async of(store: Store): Promise<NotificationRecorder> {
    const recorder = new NotificationRecorder();
    if (store.watch === undefined) throw new Error('the store sends no notifications');
    recorder.end = await store.watch((moves) => recorder.#record(moves));
    return recorder;
  }

  get runs(): string[] {
    return [...this.#last.keys()];
  }

  /** Resolves after a notification with these values of the run. */
  notified(run_id: string, moved: Partial<RunNotification>): Promise<void> {
    return this.waitFor(() => {
      const told = this.#last.get(run_id);
      return told !== undefined && isDeepStrictEqual({ ...told, ...moved }, told);
    });
  }

  async waitFor(enough: () => boolean): Promise<void> {
    while (!enough()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #record(moves: readonly RunNotification[] | undefined): void {
    if (moves === undefined) this.missed += 1;
    for (const one of moves ?? []) this.#last.set(one.run_id, one);
    this.#wake();
  }
}
