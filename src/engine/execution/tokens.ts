import { fail as failure } from '../../core/errors.ts';
import { addUsage } from '../../core/usage.ts';
import type { Run, RunStatus, RunUsage } from '../../schema/run.ts';
import type { Recorder } from './recorder.ts';

interface TokenOptions {
  /** Tokens that the agent may report; 0 for any number. */
  readonly most: number;
  /** Is told of the tokens that a run has used until it awaits. */
  readonly onUsed: (owner: string | null, tokens: number) => void;
  /** Ends the run. */
  readonly fail: (error: unknown) => void;
}

/** The tokens of an execution: those that its agent reports, or else its parts. */
export class RunTokens {
  readonly #recorder: Recorder;
  readonly #options: TokenOptions;
  #usage: RunUsage | undefined;
  /** Until the last await. */
  #usedBefore = 0;
  #partsBefore = 0;

  constructor(recorder: Recorder, options: TokenOptions) {
    this.#recorder = recorder;
    this.#options = options;
  }

  readonly add = (used: RunUsage): void => {
    this.#usage = addUsage(this.#usage, used);
    const { most, fail } = this.#options;
    const { tokens } = this.#usage;
    if (most > 0 && tokens > most) fail(failure('token_limit', most, tokens));
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
    if (this.#recorder.replay === undefined) this.#options.onUsed(this.#recorder.log.row.owner, this.sinceAwait);
    this.#usedBefore = this.#usage?.tokens ?? 0;
    this.#partsBefore = this.#recorder.parts;
  }
}
