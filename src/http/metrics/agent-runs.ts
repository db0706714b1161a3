import type { EndedRun } from '../../engine/observers.ts';
import type { PlainHistogram, Series } from './plain-histogram.ts';
import { type Ending, endingOf, type RunOutcome } from './run-outcome.ts';

/** The histograms of runs. */
export interface RunHistograms {
  readonly duration: PlainHistogram;
  readonly firstPart: PlainHistogram;
  readonly perPart: PlainHistogram;
  readonly queue: PlainHistogram;
  readonly awaits: PlainHistogram;
}

/** What was observed of the ended runs of one agent, in plain numbers. */
export class AgentRuns {
  /** By outcome and error. */
  readonly endings = new Map<string, Ending & { count: number }>();
  tokens = 0;
  /** Attempts to go on with a run that have parked it. */
  diverged = 0;
  readonly #agent: string;
  readonly #histograms: RunHistograms;
  readonly #durations = new Map<RunOutcome, Series>();
  readonly #firstPart: Series;
  readonly #perPart: Series;
  readonly #queue: Series;
  readonly #awaits: Series;

  constructor(agent: string, histograms: RunHistograms) {
    this.#agent = agent;
    this.#histograms = histograms;
    this.#firstPart = histograms.firstPart.add({ agent });
    this.#perPart = histograms.perPart.add({ agent });
    this.#queue = histograms.queue.add({ agent });
    this.#awaits = histograms.awaits.add({ agent });
  }

  onEnded({ row, error, work }: EndedRun): void {
    const ending = endingOf(row.status, error);
    this.#count(ending);
    if (work === undefined) return;
    this.tokens += work.tokens;
    this.#durationOf(ending.outcome).observe(work.seconds);
    if (work.queued !== undefined) this.#queue.observe(work.queued);
    if (work.firstPart !== undefined) this.#firstPart.observe(work.firstPart);
    if (work.perPart !== undefined) this.#perPart.observe(work.perPart);
  }

  onReply(seconds: number): void {
    this.#awaits.observe(seconds);
  }

  #count(ending: Ending): void {
    const key = `${ending.outcome} ${ending.error_code}`;
    const known = this.endings.get(key);
    if (known === undefined) this.endings.set(key, { ...ending, count: 1 });
    else known.count += 1;
  }

  #durationOf(outcome: RunOutcome): Series {
    const known = this.#durations.get(outcome);
    if (known !== undefined) return known;
    const added = this.#histograms.duration.add({ agent: this.#agent, outcome });
    this.#durations.set(outcome, added);
    return added;
  }
}
