import { appendFileSync, closeSync, openSync, readSync } from 'node:fs';
import type { Act } from '../soak/ledger.ts';

/** Milliseconds of a clock that all processes of the machine share. */
export const now = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

interface Line {
  /** When it happened, and the process in which it happened or to which it was done. */
  readonly at: number;
  readonly node: string;
}

/** What an agent did: began a life, began or ended a step with an effect, or did something at its end. */
export interface RunLine extends Line {
  readonly what: 'enter' | 'begin' | 'end' | 'undo';
  readonly run: string;
  readonly life: string;
  readonly step?: string;
  /** Of a step that begins: how long it takes, what it uses, and whether the process is to be killed in it. */
  readonly ms?: number;
  readonly values?: Readonly<Record<string, string>>;
  readonly dies?: true;
}

/** What happened to a process: it got SIGTERM, exited by itself, did not turn since a time, or the test acted on it. */
export interface NodeLine extends Line {
  readonly what: 'term' | 'exit' | 'stall' | Act;
  readonly from?: number;
}

export const isRunLine = (line: RunLine | NodeLine): line is RunLine => 'run' in line;

/**
 * The outside world: a file to which the processes and the test append, one synchronous write a line. It is the order in
 * which everything happened.
 */
export class EffectLedger {
  readonly lines: (RunLine | NodeLine)[] = [];
  /** Processes that were killed so far. */
  kills = 0;
  readonly #file: string;
  readonly #reader: number;
  readonly #byRun = new Map<string, RunLine[]>();
  readonly #byNode = new Map<string, NodeLine[]>();
  #rest = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(file: string) {
    this.#file = file;
    appendFileSync(file, '');
    this.#reader = openSync(file, 'r');
  }

  of(run: string): readonly RunLine[] {
    return this.#byRun.get(run) ?? [];
  }

  ofNode(node: string): readonly NodeLine[] {
    return this.#byNode.get(node) ?? [];
  }

  /** Records what the test does to a process; before it does so. */
  strike(what: Act, node: string): void {
    appendFileSync(this.#file, `${JSON.stringify({ at: now(), node, what })}\n`);
  }

  /** Reads the file again and again. Calls `onRunLine` for each line. */
  follow(onRunLine: (line: RunLine) => void): void {
    this.#timer = setInterval(() => this.read(onRunLine), 20);
  }

  /** Reads what was appended. */
  read(onRunLine: (line: RunLine) => void = () => {}): void {
    const buffer = Buffer.alloc(64 * 1024);
    for (let bytes = -1; bytes !== 0; ) {
      bytes = readSync(this.#reader, buffer, 0, buffer.length, null);
      const texts = (this.#rest + buffer.toString('latin1', 0, bytes)).split('\n');
      this.#rest = texts.pop() ?? '';
      for (const text of texts) this.#add(JSON.parse(text), onRunLine);
    }
  }

  close(): void {
    clearInterval(this.#timer);
    closeSync(this.#reader);
  }

  #add(line: RunLine | NodeLine, onRunLine: (line: RunLine) => void): void {
    this.lines.push(line);
    if (!isRunLine(line)) {
      append(this.#byNode, line.node, line);
      if (line.what === 'kill') this.kills += 1;
    } else {
      append(this.#byRun, line.run, line);
      onRunLine(line);
    }
  }
}

function append<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}
