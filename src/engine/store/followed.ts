import type { Watch } from '../../core/ports/run-store.ts';

/** What this node follows of the runs of other nodes: see `Watch`. It follows nothing before the node watches its store. */
export class Followed {
  #begin: (watch: Watch | undefined) => void = () => {};
  readonly #watch = new Promise<Watch | undefined>((resolve) => {
    this.#begin = resolve;
  });

  /** The node watches its store. `undefined`: no other node writes to it. */
  start(watch: Watch | undefined): void {
    this.#begin(watch);
  }

  async stop(): Promise<void> {
    this.#begin(undefined);
    await (await this.#watch)?.close();
  }

  /**
   * Follows a topic. Calls back once, when its notifications begin to arrive: what the follower has read before may be out
   * of date. Returns a function that ends it.
   */
  add(topic: string, onActive: () => void): () => void {
    let follows = true;
    const follow = async (): Promise<void> => {
      const watch = await this.#watch;
      await watch?.follow(topic);
      if (watch !== undefined && follows) onActive();
    };
    // Where the store refuses, the follower learns of changes when it polls.
    follow().catch(() => {});
    return () => {
      follows = false;
      void this.#watch.then((watch) => watch?.unfollow(topic));
    };
  }
}
