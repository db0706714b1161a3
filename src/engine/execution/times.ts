import type { RunStatus } from '../../schema/run.ts';
import type { Recorder } from './recorder.ts';
import type { JournalEntry } from './replay.ts';

/** How long a run has worked, and since when it has made no progress. All times are milliseconds. */
export class RunTimes {
  readonly #recorder: Recorder;
  #since = performance.now();
  #worked = 0;
  /** The recorder's progress when `idleFor` last saw it change, and the time of that call. */
  #lastProgress = 0;
  #lastProgressAt = performance.now();

  /** The journal has the time that earlier executions worked. */
  constructor(recorder: Recorder, journal: readonly JournalEntry[] = []) {
    this.#recorder = recorder;
    for (const { ms = 0 } of journal) if (ms > this.#worked) this.#worked = ms;
  }

  /** The time that the run has worked, in all of its executions. The time of its awaits does not count. */
  get worked(): number {
    return this.#worked + (this.#recorder.run.status === 'in-progress' ? performance.now() - this.#since : 0);
  }

  /** The time without progress, as seen by the calls of this method. */
  idleFor(): number {
    const { progress } = this.#recorder;
    const now = performance.now();
    if (progress !== this.#lastProgress) [this.#lastProgress, this.#lastProgressAt] = [progress, now];
    return now - this.#lastProgressAt;
  }

  /** Called before the status changes. */
  onStatusChange(status: RunStatus): void {
    this.#worked = this.worked;
    if (status === 'in-progress') this.#since = performance.now();
  }
}
