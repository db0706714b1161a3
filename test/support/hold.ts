import { turn } from './turn.ts';

/** Holds what comes to it until the test lets it go. */
export class Hold {
  #letGo = (): void => {};
  readonly #released = new Promise<void>((resolve) => (this.#letGo = resolve));
  #held = false;

  come(): Promise<void> {
    this.#held = true;
    return this.#released;
  }

  /** Resolves when something has come. */
  async held(): Promise<void> {
    while (!this.#held) await turn();
  }

  letGo(): void {
    this.#letGo();
  }
}
