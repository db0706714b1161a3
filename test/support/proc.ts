import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** The figures of a process in Linux's /proc. @throws Error on other systems */
export class Proc {
  readonly #folder: string;

  constructor(pid: number | undefined) {
    this.#folder = `/proc/${pid}`;
  }

  /** Megabytes in memory now. */
  get rss(): number {
    return this.#megabytes('VmRSS');
  }

  /** The most megabytes in memory since the start, or since `resetPeak`. */
  get peak(): number {
    return this.#megabytes('VmHWM');
  }

  /** Seconds of processor time so far. */
  get cpu(): number {
    // The name in brackets may contain spaces; user and system time are the 12th and 13th after it.
    const fields = readFileSync(`${this.#folder}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }

  /** Open files and sockets. */
  get handles(): number {
    return readdirSync(`${this.#folder}/fd`).length;
  }

  resetPeak(): void {
    writeFileSync(`${this.#folder}/clear_refs`, '5');
  }

  #megabytes(name: string): number {
    const found = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`${this.#folder}/status`, 'utf8'))?.[1];
    return Number(found) / 1024;
  }
}
