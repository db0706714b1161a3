import { fail } from '../../core/errors.ts';
import type { SpanIds } from '../../core/ports/traces.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { RunStatus } from '../../schema/run.ts';
import type { EndedRun, RunWork } from '../engine-events.ts';
import { madeAt } from '../ids.ts';
import type { Limits } from '../limits.ts';
import type { JournalEntry } from '../log/journal.ts';
import type { Recorder } from './recorder.ts';
import type { RunTokens } from './tokens.ts';

/** How long a run has waited and worked, and since when it has made no progress. All times are milliseconds. */
export class RunTimes {
  readonly #recorder: Recorder;
  #since = performance.now();
  #worked = 0;
  /** The recorder's progress at the last sweep, the time of that sweep, and the time without progress. */
  #progress = 0;
  #sweptAt = performance.now();
  #idle = 0;
  /** Whether no execution before this one has started the run. */
  readonly #first: boolean;
  #startedAt: number | undefined;
  #awaited = false;
  #asleep = false;

  /** The journal has the time that earlier executions worked. */
  constructor(recorder: Recorder, journal: readonly JournalEntry[] = []) {
    this.#recorder = recorder;
    // A run that was only created has one event.
    this.#first = recorder.log.row.last <= 1;
    for (const { ms = 0 } of journal) if (ms > this.#worked) this.#worked = ms;
  }

  /** The time that the run has worked, in all of its executions. The time of its awaits and its sleep does not count. */
  get worked(): number {
    const works = this.#recorder.run.status === 'in-progress' && !this.#asleep;
    return this.#worked + (works ? performance.now() - this.#since : 0);
  }

  /** The agent does nothing but sleep, or does something else again. */
  onAsleep(asleep: boolean): void {
    this.#worked = this.worked;
    this.#since = performance.now();
    this.#idle = 0;
    this.#asleep = asleep;
  }

  /** The time without progress, as of the last sweep. */
  get idle(): number {
    return this.#idle;
  }

  /**
   * Measures the time without progress. A sweep adds `sweepInterval` at most, which is the time between two of them: a process
   * that was paused, or busy with other runs, has kept the run from making progress for longer.
   */
  sweep({ sweepInterval }: Limits): void {
    const { progress } = this.#recorder;
    const now = performance.now();
    this.#idle = progress === this.#progress ? this.#idle + Math.min(now - this.#sweptAt, sweepInterval) : 0;
    this.#progress = progress;
    this.#sweptAt = now;
  }

  /** The error of a run that has worked for too long. */
  workError({ runTimeout }: Limits): ErrorBody | undefined {
    if (runTimeout === 0 || this.#recorder.run.status !== 'in-progress' || this.worked <= runTimeout) return undefined;
    return fail('run_timeout', runTimeout / 1000).toJSON();
  }

  /** The error of a run that has emitted nothing, or awaited, for too long. `now` is a date-time. */
  waitError({ idleTimeout }: Limits, now: string): ErrorBody | undefined {
    const { status, await_request } = this.#recorder.run;
    if (status === 'in-progress' && !this.#asleep && idleTimeout > 0 && this.#idle > idleTimeout)
      return fail('idle_timeout', idleTimeout / 1000).toJSON();
    const expires = status === 'awaiting' ? await_request?.expires_at : undefined;
    return expires !== undefined && expires <= now ? fail('await_timeout').toJSON() : undefined;
  }

  /** Called before the status changes. */
  onStatusChange(status: RunStatus): void {
    this.#worked = this.worked;
    if (status === 'awaiting') this.#awaited = true;
    if (status !== 'in-progress') return;
    this.#since = performance.now();
    this.#startedAt ??= this.#since;
  }

  /** What the event `runEnded` reports of the run. */
  ended(tokens: RunTokens, failure: string | undefined, span: SpanIds | undefined): EndedRun {
    const { run, log } = this.#recorder;
    return { row: log.row, error: run.error, work: this.#work(tokens), failure, span };
  }

  #work(tokens: RunTokens): RunWork {
    const { run, parts, firstPartAt } = this.#recorder;
    const startedAt = this.#first ? this.#startedAt : undefined;
    const now = performance.now();
    // The run may have been created in another process, so its age comes from its id and the wall clock.
    const queued =
      startedAt === undefined ? undefined : Math.max(0, (Date.now() - madeAt(run.run_id) - (now - startedAt)) / 1000);
    const started = startedAt !== undefined && firstPartAt !== undefined && queued !== undefined;
    return {
      seconds: this.worked / 1000,
      parts,
      tokens: tokens.total,
      sinceAwait: tokens.sinceAwait,
      queued,
      firstPart: started ? queued + (firstPartAt - startedAt) / 1000 : undefined,
      perPart: started && !this.#awaited && parts > 1 ? (now - firstPartAt) / 1000 / (parts - 1) : undefined,
    };
  }
}
