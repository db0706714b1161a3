/** Readers that continue in one turn. With 64 KiB each, a turn takes about two milliseconds. */
const perTurn = 4;

interface Waiting {
  readonly sent: number;
  resume(): void;
}

/**
 * Shares the event loop between readers that replay long logs. A store in this process answers at once, and a socket
 * buffers megabytes. So a replay would block the process until the replay ends. Here a few readers continue in each turn
 * of the event loop. Those with the fewest characters sent come first, so that a short run does not wait for long ones.
 * A reader that follows a run live never waits here.
 */
export class FairScheduler {
  readonly #waiting: Waiting[] = [];
  #turn = 0;
  #armed = false;

  /** Number of the current turn of the event loop. */
  get turn(): number {
    this.#arm();
    return this.#turn;
  }

  /** Calls back in a later turn. `sent` is the number of characters that the reader got so far. */
  wait(sent: number, resume: () => void): void {
    this.#arm();
    this.#waiting.push({ sent, resume });
  }

  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    setImmediate(() => this.#nextTurn());
  }

  #nextTurn(): void {
    this.#turn += 1;
    this.#armed = false;
    for (let count = 0; count < perTurn; count += 1) this.#takeLeast()?.resume();
    if (this.#waiting.length > 0) this.#arm();
  }

  #takeLeast(): Waiting | undefined {
    let least = 0;
    for (let index = 1; index < this.#waiting.length; index += 1) {
      if ((this.#waiting[index]?.sent ?? 0) < (this.#waiting[least]?.sent ?? 0)) least = index;
    }
    return this.#waiting.splice(least, 1)[0];
  }
}
