/** The owner of an event: a node by its name, or `world` (the store's server, the queue, the clients, the plan). */
export type Owner = string;

interface Due {
  at: number;
  readonly order: number;
  readonly owner: Owner;
  readonly work: () => void;
  dropped: boolean;
}

const realImmediate = setImmediate;

/**
 * Virtual time, and the order of all events. One event runs at a time, with all of its promises, before the next one.
 * Events that it schedules belong to the same owner. So a node can be paused and dropped as a process can.
 */
export class Clock {
  /** Milliseconds since the simulation began. */
  now = 0;
  /** The owner of the current event. */
  owner: Owner = 'world';
  /** Events so far. */
  steps = 0;
  readonly #heap: Due[] = [];
  readonly #held = new Map<Owner, Due[]>();
  readonly #dead = new Set<Owner>();
  #order = 0;

  /** Does the work after so many milliseconds. Returns a function that cancels it. */
  at(owner: Owner, delay: number, work: () => void): () => void {
    this.#order += 1;
    const due = { at: this.now + Math.max(0, delay), order: this.#order, owner, work, dropped: false };
    this.#push(due);
    return () => {
      due.dropped = true;
    };
  }

  sleep(owner: Owner, delay: number): Promise<void> {
    return new Promise((resolve) => this.at(owner, delay, resolve));
  }

  /** Holds the timers and responses of an owner until `goOn`. */
  pause(owner: Owner): void {
    if (!this.#held.has(owner)) this.#held.set(owner, []);
  }

  isPaused(owner: Owner): boolean {
    return this.#held.has(owner);
  }

  resume(owner: Owner): void {
    const held = this.#held.get(owner) ?? [];
    this.#held.delete(owner);
    for (const due of held) {
      // Not a copy: it can still be dropped.
      due.at = this.now;
      if (!due.dropped) this.#push(due);
    }
  }

  /** Drops all events of an owner. */
  kill(owner: Owner): void {
    this.#dead.add(owner);
    this.#held.delete(owner);
  }

  /** Runs events in order, until the time `until`, or until `stop` returns true. `threw` gets the error of an event. */
  async run(until: number, stop: () => boolean, threw: (error: unknown) => void): Promise<void> {
    for (;;) {
      const due = this.#heap[0];
      if (due === undefined || due.at > until) break;
      this.#pop();
      if (due.dropped || this.#dead.has(due.owner)) continue;
      const held = this.#held.get(due.owner);
      if (held !== undefined) {
        held.push(due);
        continue;
      }
      this.now = Math.max(this.now, due.at);
      this.owner = due.owner;
      this.steps += 1;
      try {
        due.work();
      } catch (error) {
        threw(error);
      }
      // Waits for all promises that follow, and for the process's event about unhandled ones.
      await new Promise<void>((resolve) => realImmediate(resolve));
      this.owner = 'world';
      if (stop()) return;
    }
    this.now = Math.max(this.now, until);
  }

  #push(due: Due): void {
    const heap = this.#heap;
    let at = heap.push(due) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = heap[up];
      if (parent === undefined || !isBefore(due, parent)) break;
      heap[at] = parent;
      at = up;
    }
    heap[at] = due;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      let child = heap[down];
      const right = heap[down + 1];
      if (right !== undefined && child !== undefined && isBefore(right, child)) {
        child = right;
        down += 1;
      }
      if (child === undefined || !isBefore(child, last)) break;
      heap[at] = child;
      at = down;
    }
    heap[at] = last;
  }
}

const isBefore = (a: Due, b: Due): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
