import { encode } from '../../core/encode.ts';
import { fail } from '../../core/errors.ts';
import { canBecome, fold, isFinal } from '../../core/run-state.ts';
import type { Event, RunEvent } from '../../schema/event.ts';
import type { Run, RunStatus } from '../../schema/run.ts';
import type { Limits } from '../limits.ts';
import type { RunLog } from '../log/run-log.ts';
import type { Replay } from './replay.ts';

/** What comes with a change of status. */
export type StatusChange = Pick<Run, 'error' | 'await_request'>;

/**
 * Writes down what a run does: the Run as it is now, and the log that it is folded from. While the run is
 * replayed, the same calls match what is there already.
 */
export class Recorder {
  readonly log: RunLog;
  readonly #limits: Limits;
  readonly #now: () => string;
  #run: Run;
  #replay: Replay | undefined;
  #events = 0;
  #chars = 0;
  /** Grows whenever the run gets on. To ask for the time instead costs 50 ns a token. */
  progress = 0;
  /** Parts streamed: the tokens of an agent that does not count them itself. */
  parts = 0;

  /** With a replay, what is recorded repeats what was, until the replay is at its end. */
  constructor(run: Run, log: RunLog, limits: Limits, now: () => string, replay?: Replay) {
    this.#run = run;
    this.log = log;
    this.#limits = limits;
    this.#now = now;
    this.#replay = replay;
  }

  get run(): Run {
    return this.#run;
  }

  /** While there is a past to repeat. */
  get replay(): Replay | undefined {
    return this.#replay;
  }

  /** The past is repeated: it is not needed any more. */
  goLive(): void {
    this.#replay = undefined;
  }

  /** The first event of the log; answers its line. */
  recordCreated(): string {
    return this.#append({ type: 'run.created', run: this.#run });
  }

  /** Whether these could be recorded now; while a log is repeated, only what it has next. */
  fits(events: readonly Event[]): boolean {
    return this.#replay?.fits(events) ?? true;
  }

  /** An event of the agent's. @throws RivuletError `output_limit`, `replay_diverged` */
  emit(event: Event): void {
    const line = encode(event);
    this.progress += 1;
    this.count(line.length);
    if (event.type === 'message.part') this.parts += 1;
    if (this.#replay?.matching) {
      this.#run = fold(this.#run, this.#replay.match(event));
    } else {
      this.#run = fold(this.#run, event);
      this.log.append(line);
    }
  }

  /** The event of a change of status, which carries the output only where it is the last one. */
  statusEvent(status: Exclude<RunStatus, 'cancelling'>, change: StatusChange = {}): RunEvent {
    const { run_id, await_request: _, ...rest } = this.#run;
    const type: RunEvent['type'] = `run.${status}`;
    // A literal's key first: what is added to a mere copy costs V8 ten times as much.
    if (!isFinal(status)) return { type, run: { run_id, ...rest, output: [], ...change, status } };
    return { type, run: { run_id, ...rest, ...change, finished_at: this.#now(), status } };
  }

  /** The only place where a live run's status changes. @throws RivuletError `replay_diverged` */
  changeStatus(status: RunStatus, change: StatusChange = {}): void {
    const before = this.#run.status;
    if (!canBecome(before, status)) throw new Error(`a run cannot go from ${before} to ${status}`);
    if (status === 'cancelling' || status === 'failed' || status === 'cancelled') this.#endReplay();
    this.progress += 1;
    if (status === 'cancelling') {
      const { await_request: _, ...rest } = this.#run;
      this.#run = { ...rest, status };
      this.log.change({ status });
      return;
    }
    const event = this.statusEvent(status, change);
    const { await_request } = event.run;
    if (await_request !== undefined) this.count(JSON.stringify(await_request).length);
    if (this.#replay?.matching) {
      this.#run = fold(this.#run, this.#replay.match(event));
    } else {
      this.#run = fold(this.#run, event);
      this.#append(event);
    }
  }

  /** A line of the journal, in the same commit as what the agent makes of it. */
  journal(line: string): void {
    this.log.attach({ journal: [line] });
  }

  /** The agent was given something new: whatever was wrong before is no longer counted. */
  noteProgress(): void {
    this.progress += 1;
    if (this.log.row.attempts > 0) this.log.change({ attempts: 0 });
  }

  /** Counts what the run writes beside events. @throws RivuletError `output_limit` */
  count(chars: number): void {
    const { events, chars: most } = this.#limits;
    this.#events += 1;
    this.#chars += chars;
    if (events > 0 && this.#events > events) throw fail('output_limit', 'events', events);
    if (most > 0 && this.#chars > most) throw fail('output_limit', 'characters', most);
  }

  /** Where a replay ends early: what the log has, the Run has. */
  #endReplay(): void {
    for (const logged of this.#replay?.rest() ?? []) {
      if (logged.type === 'message.part') this.parts += 1;
      if (!('run' in logged)) this.#run = fold(this.#run, logged);
    }
    this.#replay = undefined;
  }

  #append(event: RunEvent): string {
    const { status, finished_at, await_request } = event.run;
    const line = encode(event);
    this.log.append(line, { status, finished_at: finished_at ?? null, due: await_request?.expires_at ?? null });
    return line;
  }
}
