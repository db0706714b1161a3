import { encode } from '../../core/encode.ts';
import { fail } from '../../core/errors.ts';
import { fold } from '../../core/reduce.ts';
import { canBecome, isFinal } from '../../core/status.ts';
import type { Event, RunEvent } from '../../schema/event.ts';
import type { Run, RunStatus } from '../../schema/run.ts';
import type { Limits } from '../limits.ts';
import type { RunLog } from '../log/run-log.ts';
import type { JournalEntry, Replay } from './replay.ts';

/** What comes with a change of status. */
export type Change = Pick<Run, 'error' | 'await_request'>;

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
  /** Grows with whatever the agent says, and with each change of status. To ask for the time instead costs 50 ns a token. */
  heard = 0;
  /** Parts streamed: the tokens of an agent that does not count them itself. */
  parts = 0;

  constructor(run: Run, log: RunLog, limits: Limits, now: () => string) {
    this.#run = run;
    this.log = log;
    this.#limits = limits;
    this.#now = now;
  }

  get run(): Run {
    return this.#run;
  }

  /** Whether the Run is not yet again what its log says. */
  get replaying(): boolean {
    return this.#replay !== undefined;
  }

  get replay(): Replay | undefined {
    return this.#replay;
  }

  /** From now on, until it has caught up, what is recorded repeats what was. */
  replayWith(replay: Replay): void {
    this.#replay = replay;
  }

  /** Goes on with a replay after the agent has had its say. */
  proceed(): void {
    this.#replay?.proceed();
    if (this.#replay?.live) this.#replay = undefined;
  }

  /** The first event of the log; answers its line. */
  created(): string {
    return this.#append({ type: 'run.created', run: this.#run });
  }

  /** An event of the agent's. @throws RivuletError `output_limit`, `replay_diverged` */
  emit(event: Event): void {
    const line = encode(event);
    this.heard += 1;
    this.#count(event, line);
    if (this.#replay?.matching) {
      this.#repeat(this.#replay, event);
    } else {
      this.#run = fold(this.#run, event);
      this.log.append(line);
    }
  }

  /** The only place where a live run's status changes. @throws RivuletError `replay_diverged` */
  become(status: RunStatus, change: Change = {}): void {
    const { run_id, await_request: _, ...rest } = this.#run;
    if (!canBecome(rest.status, status)) throw new Error(`a run cannot go from ${rest.status} to ${status}`);
    const final = isFinal(status) ? { finished_at: this.#now() } : {};
    // A literal's key first: what is added to a mere copy costs V8 ten times as much.
    const run: Run = { run_id, ...rest, ...change, ...final, status };
    this.heard += 1;
    const replay = this.#replay?.matching ? this.#replay : undefined;
    const cutShort = status === 'failed' || status === 'cancelled';
    if (status === 'cancelling') {
      this.#run = run;
      this.log.change({ status });
    } else if (replay !== undefined && !cutShort) {
      this.#repeat(replay, { type: typeOf(status), run });
    } else {
      // Where a replay ends early: what the log has, the Run has.
      for (const logged of replay?.rest() ?? []) if (!('run' in logged)) fold(run, logged);
      this.#run = run;
      this.#append({ type: typeOf(status), run });
    }
  }

  /** Keeps what the agent is given, in the same commit as what it makes of it. */
  journal(entry: JournalEntry): void {
    this.log.attach({ journal: [JSON.stringify(entry)] });
  }

  #repeat(replay: Replay, event: Event): void {
    const logged = replay.match(event);
    this.#run = 'run' in logged ? { ...logged.run, output: this.#run.output } : fold(this.#run, logged);
  }

  #append(event: RunEvent): string {
    const { status, finished_at, await_request } = event.run;
    const line = encode(event);
    this.log.append(line, { status, finished_at: finished_at ?? null, due: await_request?.expires_at ?? null });
    return line;
  }

  #count(event: Event, line: string): void {
    const { events, chars } = this.#limits;
    this.#events += 1;
    this.#chars += line.length;
    if (events > 0 && this.#events > events) throw fail('output_limit', 'events', events);
    if (chars > 0 && this.#chars > chars) throw fail('output_limit', 'characters', chars);
    if (event.type === 'message.part') this.parts += 1;
  }
}

const typeOf = (status: Exclude<RunStatus, 'cancelling'>): RunEvent['type'] => `run.${status}`;
