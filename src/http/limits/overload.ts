import { monitorEventLoopDelay, type RecordableHistogram } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { fail } from '../../core/errors.ts';
import type { HttpLimits } from './limits.ts';
import { checkWork } from './work.ts';

/** Milliseconds of one measurement. A shorter one would take a single long task for an overload. */
const window = 5_000;
/** Milliseconds between two samples of the delay. */
const resolution = 20;

/** What a process measures of itself. */
export interface Measures {
  /** Milliseconds by which the event loop was late since the last call, the 99th percentile. */
  delay(): number;
  /** Percent of the heap's limit that is in use. */
  heap(): number;
}

export type OverloadLimits = Pick<HttpLimits, 'overloadDelay' | 'overloadHeap'>;

/**
 * Whether the process does not keep up with its work: events are late, or the heap is almost full at two measurements in
 * a row, because garbage fills it for a moment. New runs are refused then, so that the runs and streams that there are
 * come to their end. `check` is called once in each window.
 */
export class Overload {
  readonly #limits: OverloadLimits;
  readonly #measures: Measures;
  readonly #log: Pick<FastifyBaseLogger, 'warn' | 'info'>;
  #wasFull = false;
  /** Why new runs are refused; undefined while they are not. */
  #reason: string | undefined;
  /** Whether the heap was almost full at the last two measurements. */
  #isFull = false;

  constructor(limits: OverloadLimits, measures: Measures, log: Pick<FastifyBaseLogger, 'warn' | 'info'>) {
    this.#limits = limits;
    this.#measures = measures;
    this.#log = log;
  }

  check(): void {
    const { overloadDelay, overloadHeap } = this.#limits;
    const [delay, heap] = [this.#measures.delay(), this.#measures.heap()];
    const isLate = overloadDelay > 0 && delay > overloadDelay;
    const isFull = overloadHeap > 0 && heap > overloadHeap;
    const before = this.#reason;
    this.#reason = undefined;
    this.#isFull = isFull && this.#wasFull;
    if (this.#isFull) this.#reason = `The server’s memory is almost full (${Math.round(heap)} % of its heap)`;
    if (isLate) this.#reason = `The server does not keep up: it is late by ${Math.round(delay)} ms`;
    this.#wasFull = isFull;
    if (before === undefined && this.#reason !== undefined)
      this.#log.warn({ delay, heap }, `${this.#reason}; new runs are refused`);
    if (before !== undefined && this.#reason === undefined)
      this.#log.info({ delay, heap }, 'new runs are accepted again');
  }

  /** Whether new runs are refused. */
  get refuses(): boolean {
    return this.#reason !== undefined;
  }

  /** Whether large reads are refused as well: the heap is almost full. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** @throws RivuletError `too_busy` while the process does not keep up */
  refuse(): void {
    if (this.#reason !== undefined) throw fail('too_busy', this.#reason);
  }
}

/** Characters that the answers of all requests may hold: a fourth of the heap, so that making them has room as well. */
export const mostHeld = ({ overloadHeap }: OverloadLimits): number =>
  overloadHeap === 0 ? Number.POSITIVE_INFINITY : getHeapStatistics().heap_size_limit / 4;

/** Refuses requests that create runs while the process does not keep up. All other requests and the streams go on. */
export function shedRuns(app: FastifyInstance, limits: OverloadLimits): Pick<Overload, 'refuse' | 'isFull'> {
  if (limits.overloadDelay === 0 && limits.overloadHeap === 0) return { refuse() {}, isFull: false };
  const histogram = monitorEventLoopDelay({ resolution });
  const overload = new Overload(limits, processMeasures(histogram), app.log);
  const timer = setInterval(() => overload.check(), window).unref();
  histogram.enable();
  app.addHook('onClose', async () => {
    clearInterval(timer);
    histogram.disable();
  });
  checkWork(app, async ({ work }, _request, reply) => {
    if (work !== 'creates' || !overload.refuses) return;
    reply.header('Retry-After', String(window / 1_000));
    overload.refuse();
  });
  return overload;
}

const processMeasures = (histogram: Pick<RecordableHistogram, 'percentile' | 'reset'>): Measures => ({
  delay() {
    // Of nanoseconds between two samples; NaN where there is none.
    const late = histogram.percentile(99) / 1e6 - resolution;
    histogram.reset();
    return Math.max(0, late || 0);
  },
  heap() {
    const { used_heap_size, heap_size_limit } = getHeapStatistics();
    return (used_heap_size / heap_size_limit) * 100;
  },
});
