import type { Flaws } from './world.ts';

/** A deliberate defect, and the invariants that have to notice it. */
interface Flaw {
  readonly name: string;
  readonly flaws: Flaws;
  /** Whether a few seeds are enough. */
  readonly quick?: boolean;
  readonly noticed: readonly string[];
}

const never = 3_600_000;

/** Deliberate defects of the simulated store, and of the nodes' times. */
export const flaws: readonly Flaw[] = [
  {
    name: 'a store that takes writes of any epoch',
    flaws: { store: 'epochs-ignored' },
    quick: true,
    noticed: [
      'a cancel is kept',
      'the log is whole',
      'one execution writes',
      'a node hears that a run is no longer its own',
    ],
  },
  {
    name: 'a store that ignores the conditions of writes',
    flaws: { store: 'conditions-ignored' },
    quick: true,
    noticed: ['queued runs do not overlap', 'queued runs begin in order'],
  },
  {
    name: 'a store that accepts an Idempotency-Key twice',
    flaws: { store: 'keys-ignored' },
    quick: true,
    noticed: ['one run for a key', 'one resume for a key'],
  },
  {
    name: 'a store that loses the journals of durable runs',
    flaws: { store: 'journal-lost' },
    quick: true,
    noticed: [
      'a durable step is done once',
      'a replay says the same',
      'an acknowledged reply is given',
      'a durable run goes on',
      'no run is left open',
    ],
  },
  {
    name: 'a store that refuses what it has taken',
    flaws: { store: 'refused-but-taken' },
    noticed: [
      'only runs with a request to cancel are cancelled',
      'a reply is given once',
      'no run is left open',
      'a durable run goes on',
    ],
  },
  {
    name: 'a store in which the leases of dead nodes never end',
    flaws: { store: 'leases-ignored' },
    noticed: ['no run is left open', 'a durable run goes on'],
  },
  {
    name: 'a cancel whose notification is lost, while nodes never poll',
    flaws: { limits: { pollInterval: never } },
    noticed: ['a node hears that a run is no longer its own', 'readers see the whole log'],
  },
  {
    name: 'the end of a run whose notification is lost, while nodes never poll',
    flaws: { limits: { pollInterval: never, lease: never } },
    noticed: ['no run is left open', 'readers see the whole log'],
  },
];
