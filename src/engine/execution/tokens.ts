import { fail } from '../../core/errors.ts';
import { addUsage } from '../../core/usage.ts';
import type { Run, RunStatus, RunUsage } from '../../schema/run.ts';
import type { Limits } from '../limits.ts';
import type { Recorder } from './recorder.ts';

export interface TokenServices {
  readonly limits: Pick<Limits, 'tokens'>;
  /** A run has used tokens, and awaits. */
  readonly onTokens: (owner: string | null, tokens: number) => void;
}

/** The tokens of an execution: those that its agent reports, or else its parts. */
export class RunTokens {
  readonly #recorder: Recorder;
  readonly #services: TokenServices;
  readonly #fail: (error: unknown) => void;
  #usage: RunUsage | undefined;
  /** Until the last await. */
  #usedBefore = 0;
  #partsBefore = 0;

  /** `fail` ends the run. */
  constructor(recorder: Recorder, services: TokenServices, fail: (error: unknown) => void) {
    this.#recorder = recorder;
    this.#services = services;
    this.#fail = fail;
  }

  readonly add = (used: RunUsage): void => {
    this.#usage = addUsage(this.#usage, used);
    const { tokens: most } = this.#services.limits;
    const { tokens } = this.#usage;
    if (most > 0 && tokens > most) this.#fail(fail('token_limit', most, tokens));
  };

  /** What the agent has reported, for the events that settle the run. */
  get reported(): Pick<Run, 'usage'> {
    return this.#usage === undefined ? {} : { usage: this.#usage };
  }

  get total(): number {
    return this.#usage?.tokens ?? this.#recorder.parts;
  }

  /** Those after the last await of the run, which may be one of an earlier execution. */
  get sinceAwait(): number {
    const { parts } = this.#recorder;
    return this.#usage === undefined ? parts - this.#partsBefore : this.#usage.tokens - this.#usedBefore;
  }

  /** Called before the status changes. */
  onStatusChange(status: RunStatus): void {
    if (status !== 'awaiting') return;
    // In a replay, the execution that asked the question has counted them.
    if (this.#recorder.replay === undefined) this.#services.onTokens(this.#recorder.log.row.owner, this.sinceAwait);
    this.#usedBefore = this.#usage?.tokens ?? 0;
    this.#partsBefore = this.#recorder.parts;
  }
}
