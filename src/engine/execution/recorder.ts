import { encode } from '../../core/encode.ts';
import { fail } from '../../core/errors.ts';
import { fold } from '../../core/fold.ts';
import { canBecome, isFinal } from '../../core/run-state.ts';
import { closeMessage } from '../../core/to-events.ts';
import type { Event, RunEvent } from '../../schema/event.ts';
import type { FinishReason } from '../../schema/message.ts';
import type { Run, RunStatus } from '../../schema/run.ts';
import type { Limits } from '../limits.ts';
import { cancelLine } from '../log/journal.ts';
import { changeOf, type RunLog } from '../log/run-log.ts';
import type { Replay } from './replay.ts';

/** The fields of the Run that come with a change of status. */
export type StatusChange = Pick<Run, 'error' | 'cancel_reason' | 'await_request' | 'await_resume' | 'usage'>;

/**
 * Records what a run does: it appends events to the log, and folds them into the Run. During a replay the same calls
 * match the events that the log has already.
 */
export class Recorder {
  readonly log: RunLog;
  readonly #limits: Limits;
  readonly #now: () => string;
  #run: Run;
  #replay: Replay | undefined;
  #events = 0;
  #chars = 0;
  /** Counts the run's progress, to detect a run without any. */
  progress = 0;
  /** Parts emitted: the tokens of an agent that does not report its usage. */
  parts = 0;
  /** Those of them that were in the log already. */
  replayedParts = 0;
  /** `progress` when the attempt of this re-entry was taken back; undefined while it counts. */
  #uncountedAt: number | undefined;
  /** When the first part was emitted: `performance.now`. Undefined where it was in the log already. */
  firstPartAt: number | undefined;

  /** With a replay, events are matched with the log until the replay ends. */
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

  /** The replay, until the run is live. */
  get replay(): Replay | undefined {
    return this.#replay;
  }

  /** Ends the replay: everything is repeated. */
  goLive(): void {
    this.#replay = undefined;
  }

  /** Appends the first event of the log; returns its line. */
  recordCreated(): string {
    return this.#append({ type: 'run.created', run: this.#run });
  }

  /** Whether these events can be recorded now: always, or during a replay, if they are next in the log. */
  fits(events: readonly Event[]): boolean {
    return !this.sealed && (this.#replay?.fits(events) ?? true);
  }

  /** Whether only the final event may follow, because the run is cancelled. A replay matches the events of the log first. */
  get sealed(): boolean {
    return this.log.row.status === 'cancelling' && this.#replay?.matching !== true;
  }

  /** The run is cancelled during a replay, which goes on to its end. */
  cancelAfterReplay(reason?: string): void {
    this.log.change({ status: 'cancelling', status_at: this.#now() });
    this.journal(cancelLine(this.log.row.last, reason));
    this.#replay?.cancelAtEnd(reason);
  }

  /** The replay has come to the cancel of the run, which has no event. */
  repeatCancel(cancel_reason?: string): void {
    const { await_request: _, ...rest } = this.#run;
    this.#run = { ...rest, status: 'cancelling', ...(cancel_reason !== undefined && { cancel_reason }) };
  }

  /** Records an event of the agent. @throws RivuletError `output_limit`, `replay_diverged` */
  emit(event: Event): void {
    const line = encode(event);
    this.progress += 1;
    this.count(line.length);
    if (event.type === 'message.part') this.#countPart();
    if (this.#replay?.matching) {
      this.#run = fold(this.#run, this.#replay.match(event));
    } else {
      this.#run = fold(this.#run, event);
      this.log.append(line);
      // The first token of a message is in the same turn.
      if (event.type !== 'message.part') this.log.hurry();
    }
  }

  /** Makes the event that completes the message that is open, if one is. `finish_reason`: why it is not whole. */
  closing(finish_reason?: FinishReason): Event[] {
    const events: Event[] = [];
    closeMessage(this.#run, (event) => void events.push(event), this.#now, finish_reason);
    return events;
  }

  /** Makes the event of a change of status. Only the final event carries the output and the questions. */
  statusEvent(status: Exclude<RunStatus, 'cancelling'>, change: StatusChange = {}): RunEvent {
    const { run_id, await_request: _, questions, ...rest } = this.#run;
    const type: RunEvent['type'] = `run.${status}`;
    if (!isFinal(status)) return { type, run: { run_id, ...rest, output: [], ...change, status } };
    return {
      type,
      run: { run_id, ...rest, ...(questions && { questions }), ...change, finished_at: this.#now(), status },
    };
  }

  /** The only place where a live run's status changes. @throws RivuletError `replay_diverged` */
  changeStatus(status: RunStatus, change: StatusChange = {}): void {
    const before = this.#run.status;
    if (!canBecome(before, status)) throw new Error(`a run cannot go from ${before} to ${status}`);
    if (status === 'cancelling' || status === 'failed' || status === 'cancelled') this.endReplay();
    this.progress += 1;
    if (status === 'cancelling') {
      this.repeatCancel(change.cancel_reason);
      this.log.change({ status, status_at: this.#now() });
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

  /** Appends a line to the journal, in the same commit as the events that follow from it. */
  journal(line: string): void {
    this.log.attach({ journal: [line] });
  }

  /** The agent received something new: recovery attempts count from zero. */
  noteProgress(): void {
    this.progress += 1;
    if (this.log.row.attempts > 0) this.log.change({ attempts: 0 });
  }

  /** The run is live again and only awaits, so it is not what stops its process: the re-entry is no attempt so far. */
  takeBackAttempt(): void {
    const { attempts } = this.log.row;
    if (attempts === 0) return;
    this.log.change({ attempts: attempts - 1 });
    this.#uncountedAt = this.progress;
  }

  /** Work begins. An attempt that was taken back counts again where the run has made no progress since. Returns whether it does. */
  countAttempt(): boolean {
    const counts = this.#uncountedAt === this.progress;
    this.#uncountedAt = undefined;
    if (counts) this.log.change({ attempts: this.log.row.attempts + 1 });
    return counts;
  }

  /** Counts one more entry and its characters against the limits of the run. @throws RivuletError `output_limit` */
  count(chars: number): void {
    const { events, chars: most } = this.#limits;
    this.#events += 1;
    this.#chars += chars;
    if (events > 0 && this.#events > events) throw fail('output_limit', 'events', events);
    if (most > 0 && this.#chars > most) throw fail('output_limit', 'characters', most);
  }

  /** Ends a replay early: folds the rest of the log into the Run, whose status the caller then changes. */
  endReplay(): void {
    for (const logged of this.#replay?.rest() ?? []) {
      if (logged.type === 'message.part') this.#countPart();
      this.#run = fold(this.#run, logged);
    }
    this.#replay = undefined;
  }

  #countPart(): void {
    if (this.#replay?.matching) this.replayedParts += 1;
    else if (this.parts === 0) this.firstPartAt = performance.now();
    this.parts += 1;
  }

  #append(event: RunEvent): string {
    const line = encode(event);
    this.log.append(line, changeOf(event.run, this.#now()));
    return line;
  }
}
