/** How many go on in one turn: with 64 KiB each, two milliseconds for everybody else to wait. */
const perTurn = 4;

interface Waiter {
  readonly had: number;
  go(): void;
}

/**
 * Lets the event loop turn between readers who have much to catch up on. A store in this process answers at
 * once and a socket takes megabytes at once, so a replay would not let go of the process before one of them
 * is through: 500 of them kept everybody else waiting for eleven seconds. Here a few go on in each turn,
 * those who have had least, so that a short run does not queue behind long ones.
 * It costs a turn (some 30 µs) and a look at those who wait for each round of a replay; who has caught up
 * never asks.
 */
export class Turns {
  readonly #waiting: Waiter[] = [];
  #now = 0;
  #armed = false;

  /** Changes with every turn of the event loop. */
  get now(): number {
    this.#arm();
    return this.#now;
  }

  /** Calls back in a later turn. `had` is what it was given so far. */
  wait(had: number, go: () => void): void {
    this.#arm();
    this.#waiting.push({ had, go });
  }

  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#now += 1;
    this.#armed = false;
    for (let count = 0; count < perTurn; count += 1) this.#least()?.go();
    if (this.#waiting.length > 0) this.#arm();
  }

  #least(): Waiter | undefined {
    let least = 0;
    for (let index = 1; index < this.#waiting.length; index += 1) {
      if ((this.#waiting[index]?.had ?? 0) < (this.#waiting[least]?.had ?? 0)) least = index;
    }
    return this.#waiting.splice(least, 1)[0];
  }
}
