export interface Line {
  readonly level: number;
  readonly msg: string;
  readonly request_id?: string;
  readonly run_id?: string;
  readonly path?: string;
  readonly [field: string]: unknown;
}

/** The lines of a server, as a program that reads its stdout has them. */
export class Lines {
  readonly #lines: Line[] = [];
  #onLine = (): void => {};

  readonly stream = {
    write: (text: string): void => {
      this.#lines.push(JSON.parse(text));
      this.#onLine();
    },
  };

  get text(): string {
    return JSON.stringify(this.#lines);
  }

  all(msg: string): Line[] {
    return this.#lines.filter((line) => line.msg === msg);
  }

  /** Waits for the first line that matches: lines follow the response. */
  async find(holds: (line: Line) => boolean): Promise<Line> {
    for (;;) {
      const found = this.#lines.find(holds);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        this.#onLine = resolve;
      });
    }
  }

  request(path: string): Promise<Line> {
    return this.find((line) => line.msg === 'request' && line.path === path);
  }
}
