import type { ChildProcess } from 'node:child_process';

/** The output of a process, for tests that wait for it. */
export class Output {
  text = '';
  #looked = 0;
  #ended = false;
  #wake = (): void => {};

  constructor(child: ChildProcess) {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        this.text += chunk;
        this.#wake();
      });
    }
    child.once('close', () => {
      this.#ended = true;
      this.#wake();
    });
  }

  /** Resolves when the text is printed, after the texts of earlier calls. @throws Error if the process ends first */
  async has(words: string): Promise<void> {
    for (;;) {
      const at = this.text.indexOf(words, this.#looked);
      if (at >= 0) {
        this.#looked = at + words.length;
        return;
      }
      if (this.#ended) throw new Error(`it ended without "${words}", and had printed: ${this.text}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
