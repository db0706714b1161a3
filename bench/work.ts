/** A workload by which contestants are compared. */
import type { Contestant, Entry } from './contestant.ts';

/**
 * Milliseconds of a turn, unless the command says otherwise. Where servers are idle for minutes between their turns, the
 * machine takes memory away from them, and a shorter turn would measure mostly its return.
 */
export const usualTurn = 1_000;

/** The figures of one contestant in one round, by name of the column. */
export type Figures = Readonly<Record<string, number>>;

export interface Column {
  readonly name: string;
  /** Digits after the decimal point. */
  readonly digits: number;
  /** The figure is of the load, and neither more nor less of it is better. */
  readonly ofLoad?: true;
}

interface Common {
  readonly name: string;
  /** Selected by `--only`. */
  readonly group: string;
  /** What is done and how it is measured; printed above the table. */
  readonly about: string;
  /** Ratios and spread are those of the first column. */
  readonly columns: readonly Column[];
  /** Id of the contestant to which ratios refer. */
  readonly base?: string;
}

/** Measured on servers, in several rounds. */
export interface MeasuredInRounds extends Common {
  /** Whether each round starts a new process, because memory does not return to its former size. */
  readonly fresh?: boolean;
  takes(entry: Entry): boolean;
  /**
   * `turn`, in milliseconds, sets how much of full streams, runs and first tokens is measured: for as long, or as many as
   * the memory store does in about that time. Other works are always the same.
   */
  measure(contestant: Contestant, turn: number): Promise<Figures>;
  /** What it does to warm up, where that is not what is measured. */
  warm?(contestant: Contestant): Promise<unknown>;
}

/** Measured once, without contestants. */
export interface MeasuredOnce extends Common {
  /** `folder` is for temporary files. */
  find(folder: string): Promise<ReadonlyMap<string, Figures>>;
}

export type Work = MeasuredInRounds | MeasuredOnce;

/** The result of a workload. */
export interface Result {
  readonly work: Work;
  /** The figures of each round, by id of the contestant. The rounds are the same for all. */
  readonly rows: ReadonlyMap<string, readonly Figures[]>;
  /** Reasons why contestants were excluded, by id. */
  readonly excluded: ReadonlyMap<string, string>;
}

export const isRivulet = ({ id }: Entry): boolean => id.startsWith('rivulet');
/** Rivulet and the servers written by hand; no peers. */
export const isNoPeer = (entry: Entry): boolean => isRivulet(entry) || ['bare', 'tick', 'fastify'].includes(entry.id);

export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * part;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place % 1);
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);
