import type { FastifyBaseLogger } from 'fastify';
import { isReported } from '../../engine/unhandled.ts';

/** Errors in a minute after which a process ends: an agent has left something behind that does not stop. */
const maxErrors = 10;
const minute = 60_000;

/**
 * Counts the errors that agents throw outside of their runs. A few are the agent's bug, and other runs need not end for
 * it. Many say that the state of the process is not known any more.
 */
export class StrayErrors {
  /** The times of the last ones. */
  readonly #times: number[] = [];
  count = 0;

  /** Counts one. Returns whether there were more than ten within a minute. */
  add(now: number): boolean {
    this.count += 1;
    this.#times.push(now);
    if (this.#times.length <= maxErrors) return false;
    return now - (this.#times.shift() ?? now) < minute;
  }
}

/**
 * An agent may throw where no Observable catches the error, for example in a timer. Its run goes on; if the process
 * ended, all other runs would end, too. After more than ten errors within a minute the process is ended all the same:
 * not ready, drained, with exit code 1, so that its manager starts another one.
 */
export function surviveStrayErrors(log: FastifyBaseLogger, end: (() => void) | undefined): void {
  const strays = new StrayErrors();
  let isEnding = false;
  const survive = (error: unknown): void => {
    if (isReported(error)) return;
    const begins = strays.add(performance.now()) && end !== undefined && !isEnding;
    isEnding ||= begins;
    const goesOn = isEnding ? 'ends' : 'goes on';
    log.error({ err: error, count: strays.count }, `an agent threw outside of its run; the server ${goesOn}`);
    if (begins) end?.();
  };
  process.on('uncaughtException', survive);
  process.on('unhandledRejection', survive);
}
