/** Concurrent look-ups. Each blocks one of libuv's four threads until its name server answers, and files need one. */
const lookupsAtOnce = 3;
/** Those of one share: name servers that do not answer must not hold up the look-ups of others. */
const lookupsPerShare = 2;

interface Waiting {
  readonly signal: AbortSignal;
  readonly start: (done: () => void) => void;
}

interface Share {
  active: number;
  readonly waiting: Waiting[];
}

/** Look-ups of names, in turns by share: an owner whose names are slow waits for itself. */
export class LookupQueue {
  readonly #shares = new Map<string, Share>();
  #active = 0;

  /** Calls `start` when its turn comes, unless its request was aborted meanwhile. `start` calls `done` once. */
  add(name: string, waiting: Waiting): void {
    const share = this.#shares.get(name) ?? { active: 0, waiting: [] };
    this.#shares.set(name, share);
    share.waiting.push(waiting);
    this.#begin();
  }

  #begin(): void {
    for (const [name, share] of this.#shares) {
      if (this.#active === lookupsAtOnce) return;
      if (share.active === lookupsPerShare) continue;
      let next = share.waiting.shift();
      while (next?.signal.aborted) next = share.waiting.shift();
      if (next !== undefined || share.active === 0) this.#shares.delete(name);
      if (next === undefined) continue;
      // Behind the others. The loop comes to it again.
      this.#shares.set(name, share);
      share.active += 1;
      this.#active += 1;
      next.start(() => {
        share.active -= 1;
        this.#active -= 1;
        this.#begin();
      });
    }
  }
}
