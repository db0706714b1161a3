interface Share {
  active: number;
  readonly waiting: (() => void)[];
}

export interface FairQueueOptions {
  /** Tasks that are at work at once. */
  readonly atOnce: number;
  /** Tasks of one share: a number, or at most as many as are free, so that another share always finds room. */
  readonly perShare: number | 'free';
}

/** Works on some tasks at once, in turns by share: an owner whose tasks are slow or many waits for itself. */
export class FairQueue {
  readonly #atOnce: number;
  readonly #perShare: FairQueueOptions['perShare'];
  readonly #shares = new Map<string, Share>();
  #active = 0;

  constructor({ atOnce, perShare }: FairQueueOptions) {
    this.#atOnce = atOnce;
    this.#perShare = perShare;
  }

  /** Tasks that may begin now. */
  get free(): number {
    return this.#atOnce - this.#active;
  }

  /** Tasks of a share that wait. */
  waiting(name: string): number {
    return this.#shares.get(name)?.waiting.length ?? 0;
  }

  /** Begins the work when its turn comes, and resolves to its result. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const share = this.#shares.get(name) ?? { active: 0, waiting: [] };
    this.#shares.set(name, share);
    await new Promise<void>((resolve) => {
      share.waiting.push(resolve);
      this.#beginNext(name);
    });
    try {
      return await work();
    } finally {
      share.active -= 1;
      this.#active -= 1;
      if (share.active === 0 && share.waiting.length === 0) this.#shares.delete(name);
      // Without a bound of them all, the end of a task gives room to its own share alone.
      if (this.#atOnce === Number.POSITIVE_INFINITY) this.#beginNext(name);
      else this.#beginAll();
    }
  }

  #beginAll(): void {
    for (const name of this.#shares.keys()) {
      if (this.free === 0) return;
      this.#beginNext(name);
    }
  }

  /** Begins the next task of a share, if it may, and moves the share behind the others: `#beginAll` comes to it again. */
  #beginNext(name: string): void {
    const share = this.#shares.get(name);
    const most = this.#perShare === 'free' ? this.free : this.#perShare;
    if (share === undefined || this.free === 0 || share.active >= most || share.waiting.length === 0) return;
    this.#shares.delete(name);
    this.#shares.set(name, share);
    share.active += 1;
    this.#active += 1;
    share.waiting.shift()?.();
  }
}
