import { isDeepStrictEqual } from 'node:util';
import { allChanges, type RunNotification, type Watch } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';

/** Records the notifications that a store sends to one subscriber. */
export class NotificationRecorder {
  readonly #heard = new Map<string, RunNotification[]>();
  #wake = (): void => {};
  missed = 0;
  #watch: Watch | undefined;

  /** Follows all changes of status, or else the topics that are given. */
  static async of(store: Store, topics: readonly string[] = [allChanges]): Promise<NotificationRecorder> {
    const recorder = new NotificationRecorder();
    if (store.watch === undefined) throw new Error('the store sends no notifications');
    recorder.#watch = await store.watch((moves) => recorder.#record(moves));
    for (const topic of topics) await recorder.follow(topic);
    return recorder;
  }

  async follow(topic: string): Promise<void> {
    await this.#watch?.follow(topic);
  }

  unfollow(topic: string): void {
    this.#watch?.unfollow(topic);
  }

  async end(): Promise<void> {
    await this.#watch?.close();
  }

  get runs(): string[] {
    return [...this.#heard.keys()];
  }

  /** The last event of which the subscriber was told. */
  last(run_id: string): number | undefined {
    return this.#heard.get(run_id)?.at(-1)?.last;
  }

  /** Whether the subscriber was told of an event. */
  heard(run_id: string, last: number): boolean {
    return this.#heard.get(run_id)?.some((one) => one.last === last) === true;
  }

  /** Resolves after a notification with these values of the run. */
  notified(run_id: string, moved: Partial<RunNotification>): Promise<void> {
    return this.waitFor(() => {
      const heard = this.#heard.get(run_id) ?? [];
      return heard.some((one) => isDeepStrictEqual({ ...one, ...moved }, one));
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
    for (const one of moves ?? []) this.#heard.set(one.run_id, [...(this.#heard.get(one.run_id) ?? []), one]);
    this.#wake();
  }
}
