/** What is known of a store without opening it: nothing is created, migrated or locked. */
export interface Inspection {
  /** The version of the stored data; undefined where there is none yet. */
  readonly version: number | undefined;
  /** The version that this Rivulet writes. A start refuses a newer one. */
  readonly known: number;
  /** Milliseconds by which the store's clock is ahead of this process's; undefined for a store without a clock. */
  readonly clockAhead?: number;
  /** Settings of the store that may lose acknowledged commits. */
  readonly warnings?: readonly string[];
}

/** How far the other clock is ahead. It was read between two readings of this clock. */
export const clockAhead = (before: number, other: number, after: number): number =>
  Math.round(other - (before + after) / 2);
