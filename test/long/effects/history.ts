import type { Run } from '../../../src/index.ts';
import { type EffectLedger, isRunLine, type NodeLine, type RunLine } from './effect-ledger.ts';
import type { Order } from './orders.ts';

/** A reply that a client sent. */
export interface Reply {
  readonly text: string;
  readonly sentAt: number;
  outcome: 'accepted' | 'refused' | 'unknown';
}

/** A run, as its client knows it. */
export interface Placed {
  readonly order: Order;
  readonly run_id: string;
  readonly session_id: string;
  /** The status that the client has seen last. */
  status: Run['status'];
  error?: string;
  readonly replies: Reply[];
  /** When the cancel was sent that got an answer, or last. */
  cancel?: { readonly sentAt: number; readonly outcome: Reply['outcome'] };
  /** What the run waited for in vain. */
  readonly stuck: Stuck[];
}

/** `unasked`: the step that needs no reply did not end. `reply`: the run did not go on with its reply. `end`: it did not end. */
type Stuck = 'unasked' | 'reply' | 'end';

/** The times of the nodes, in milliseconds. */
export interface Times {
  readonly lease: number;
  readonly cancelGrace: number;
  readonly shutdownGrace: number;
}

/** One execution of a step's work. */
export interface Attempt {
  readonly step: string;
  readonly life: string;
  readonly node: string;
  readonly begin: RunLine;
  readonly from: number;
  /** Infinity if the ledger has no end of it. */
  readonly to: number;
}

/** What became of each process. */
export class Processes {
  readonly #ledger: Pick<EffectLedger, 'ofNode'>;
  readonly times: Times;

  constructor(ledger: Pick<EffectLedger, 'ofNode'>, times: Times) {
    this.#ledger = ledger;
    this.times = times;
  }

  of(node: string): readonly NodeLine[] {
    return this.#ledger.ofNode(node);
  }

  /** When the first of these happened to a process; Infinity for never. */
  when(node: string, ...whats: NodeLine['what'][]): number {
    return this.of(node).find(({ what }) => whats.includes(what))?.at ?? Number.POSITIVE_INFINITY;
  }

  /**
   * When the last stall ended that touches a period, if there was one. A node renews its leases twice in their time, so
   * that it may lose them in a stall of half of it, or of less with a slow store.
   */
  stalled(node: string, from: number, to: number): number | undefined {
    const { lease } = this.times;
    return this.of(node)
      .flatMap(({ what, at, from: since = at }) => {
        if (what === 'pause') return [{ from: at, to: at + lease }];
        return what === 'stall' && at - since >= lease / 3 ? [{ from: since, to: at }] : [];
      })
      .findLast((stall) => stall.from <= to && stall.to >= from)?.to;
  }

  /** Whether another node may do the same step at a time: this one is dead, or was stalled, or its grace is over. */
  excuses({ node, from }: Attempt, at: number): boolean {
    const { lease, shutdownGrace } = this.times;
    if (this.when(node, 'kill', 'exit') <= at || this.when(node, 'term') + shutdownGrace <= at) return true;
    return this.stalled(node, from - lease, at) !== undefined;
  }
}

/** What one run did outside. */
export class History {
  readonly placed: Placed;
  readonly lines: readonly RunLine[];
  readonly attempts: readonly Attempt[];
  /** The lives, in the order in which they were entered. */
  readonly #lives: readonly string[];

  constructor(placed: Placed, lines: readonly RunLine[]) {
    this.placed = placed;
    this.lines = lines;
    this.#lives = lines.filter(({ what }) => what === 'enter').map(({ life }) => life);
    this.attempts = lines.flatMap((begin, index) => {
      const { what, step = '', life, node, at } = begin;
      if (what !== 'begin') return [];
      const end = lines.slice(index).find((line) => line.what === 'end' && line.step === step && line.life === life);
      return [{ step, life, node, begin, from: at, to: end?.at ?? Number.POSITIVE_INFINITY }];
    });
  }

  /** Each attempt with each later one of the same step. */
  get repeats(): [Attempt, Attempt][] {
    return this.attempts.flatMap((attempt, index) =>
      this.attempts
        .slice(index + 1)
        .filter(({ step }) => step === attempt.step)
        .map((next): [Attempt, Attempt] => [attempt, next]),
    );
  }

  /** Whether a life was entered before another one. */
  isBefore(life: string, other: string): boolean {
    return this.#lives.indexOf(life) < this.#lives.indexOf(other);
  }

  /** Whether a life had the run at a time: no later life had been entered. */
  isCurrent(life: string, time: number): boolean {
    return this.lines.findLast(({ what, at }) => what === 'enter' && at <= time)?.life === life;
  }

  /** When the agent was called first. */
  get startedAt(): number {
    return this.lines[0]?.at ?? 0;
  }

  /** The run's lines, and what happened to its processes meanwhile: seconds since a time, process and life. */
  text(processes: Processes, since = this.startedAt): string {
    const last = this.lines.at(-1)?.at ?? since;
    const nodes = new Set(this.lines.map(({ node }) => node));
    const around = [...nodes]
      .flatMap((node) => processes.of(node))
      .filter(({ at }) => at > this.startedAt - 3_000 && at < last);
    return [...this.lines, ...around]
      .toSorted((a, b) => a.at - b.at)
      .map((line) => {
        const seconds = ((line.at - since) / 1_000).toFixed(3);
        return `  ${seconds} ${line.node} ${isRunLine(line) ? ofRun(line) : ofProcess(line)}`;
      })
      .join('\n      ');
  }
}

const ofProcess = ({ what, at, from = at }: NodeLine): string =>
  what === 'stall' ? `stalled for ${Math.round(at - from)} ms` : what.toUpperCase();

function ofRun({ what, life, step = '', ms, values = {} }: RunLine): string {
  const used = Object.entries(values).map(([name, value]) => ` ${name}=${value.slice(0, 4)}`);
  return `${life.slice(0, 3)} ${what} ${step}${ms === undefined ? '' : ` ${ms} ms`}${used.join('')}`;
}
