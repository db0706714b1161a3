/**
 * An AbortSignal that is made when somebody asks for it. Most agents never do, and to make one, and to abort it at
 * the end, costs as much as a short run does otherwise.
 */
export class Abort {
  #controller: AbortController | undefined;
  #reason: string | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(new Error(this.#reason));
    }
    return this.#controller.signal;
  }

  get reason(): string | undefined {
    return this.#reason;
  }

  /** The first reason counts. */
  abort(reason: string): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#controller?.abort(new Error(reason));
  }
}
