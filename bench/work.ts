/** A piece of work that contestants are compared at. */
import type { Contestant, Entry } from './contestant.ts';

/** What one contestant did in one round, by the columns' names. */
export type Figures = Readonly<Record<string, number>>;

export interface Column {
  readonly name: string;
  /** After the point. */
  readonly digits: number;
}

interface Common {
  readonly name: string;
  /** For `--only`. */
  readonly group: string;
  /** What is done and how it is counted; a sentence or two above the table. */
  readonly about: string;
  /** The first is the one that ratios and spread are of. */
  readonly columns: readonly Column[];
  /** The `id` of the contestant that ratios relate to. */
  readonly base?: string;
}

/** Measured on servers, in rounds. */
export interface Measured extends Common {
  /** A new process for each round, where what is measured does not come back. */
  readonly fresh?: boolean;
  takes(entry: Entry): boolean;
  measure(contestant: Contestant): Promise<Figures>;
}

/** Found out once. */
export interface Found extends Common {
  /** `folder` is for its files. */
  find(folder: string): Promise<ReadonlyMap<string, Figures>>;
}

export type Work = Measured | Found;

/** What came of a work. */
export interface Result {
  readonly work: Work;
  /** By the contestants' ids: a figure for each round, which are the same rounds for all. */
  readonly rows: ReadonlyMap<string, readonly Figures[]>;
  /** Who did not take part, by id, and why. */
  readonly out: ReadonlyMap<string, string>;
}

export const isRivulet = ({ id }: Entry): boolean => id.startsWith('rivulet');
/** The three limits and ours; no peers. */
export const isAtHome = (entry: Entry): boolean => isRivulet(entry) || ['bare', 'tick', 'fastify'].includes(entry.id);

export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * part;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place % 1);
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);
