interface Share {
  active: number;
  readonly waiting: (() => void)[];
}

/** Works on some tasks at once, in turns by share: an owner whose tasks are slow or many waits for itself. */
export class FairQueue {
  readonly #atOnce: number;
  readonly #perShare: number;
  readonly #shares = new Map<string, Share>();
  #active = 0;

  constructor({ atOnce, perShare }: { readonly atOnce: number; readonly perShare: number }) {
    this.#atOnce = atOnce;
    this.#perShare = perShare;
  }

  /** Begins the work when its turn comes, and resolves to its result. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const share = this.#shares.get(name) ?? { active: 0, waiting: [] };
    this.#shares.set(name, share);
    await new Promise<void>((resolve) => {
      share.waiting.push(resolve);
      this.#begin();
    });
    try {
      return await work();
    } finally {
      share.active -= 1;
      this.#active -= 1;
      if (share.active === 0 && share.waiting.length === 0) this.#shares.delete(name);
      this.#begin();
    }
  }

  #begin(): void {
    for (const [name, share] of this.#shares) {
      if (this.#active === this.#atOnce) return;
      if (share.active === this.#perShare || share.waiting.length === 0) continue;
      // Behind the others. The loop comes to it again.
      this.#shares.delete(name);
      this.#shares.set(name, share);
      share.active += 1;
      this.#active += 1;
      share.waiting.shift()?.();
    }
  }
}
