import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { compile } from '../core/validate.ts';

const hour = 3_600_000;
/** Node's timers cannot wait for longer: they would fire at once. */
const longestTimer = 2 ** 31 - 1;
/** A hundred years in milliseconds: times up to here make dates that can be written. */
const longestTime = 3_155_760_000_000;

const number = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });
const time = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 0, maximum: longestTime, description });
/** Milliseconds of a timer. */
export const timer = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 0, maximum: longestTimer, description });
/** Milliseconds of a timer that has to run. */
export const interval = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, maximum: longestTimer, description });

/**
 * What runs may take, and how long. A run that goes over ends `failed`; the server goes on. Zero is for never, where it
 * is allowed. Times are in milliseconds.
 */
export const Limits = Type.Object(
  {
    events: number(1_000_000, 'Events that the agent may cause in one run.'),
    chars: number(256 * 1024 * 1024, 'Characters of JSON in those events.'),
    backlog: number(256 * 1024, 'Characters waiting for the store before an agent’s iterable is held back.'),
    running: number(
      10_000,
      'Runs at work at once in a process; awaiting and queued ones do not count. One more is refused with 503, or where several processes share the work, waits until one of them has room.',
    ),
    queued: number(
      1_000,
      'Runs of one session that may be unfinished when one more is queued behind them; more are refused with 429.',
    ),
    cancelGrace: timer(5_000, 'Time that a cancelled agent has to stop in.'),
    runTimeout: time(hour, 'Time that a run may be at work, awaits left out.'),
    awaitTimeout: time(7 * 24 * hour, 'Time that a run may await an answer.'),
    idleTimeout: time(hour / 6, 'Time that a run at work may emit nothing.'),
    passivateAfter: time(60_000, 'Time after which an awaiting durable run leaves memory.'),
    attempts: number(3, 'How often a durable run is re-entered without getting on.'),
    runTtl: time(30 * 24 * hour, 'Time that a final run is kept.'),
    idempotencyTtl: time(24 * hour, 'Time that an Idempotency-Key is kept.'),
    shutdownGrace: timer(10_000, 'Time that pinned runs get when the server stops.'),
    sweepInterval: interval(1_000, 'Time between checks of all of these times.'),
    lease: interval(15_000, 'Time after which the runs of a node that is gone are executed by another one.'),
    pollInterval: interval(5_000, 'Time between polls for what other nodes wrote, should a notification be lost.'),
    requestTimeout: interval(5_000, 'Time that a request waits for a store that does not answer.'),
    storeTimeout: interval(
      60_000,
      'Time for which a commit that the store fails to take is tried again, before its runs fail.',
    ),
    sessionTtl: time(30 * 24 * hour, 'Time that a session without runs is kept after it was last written to.'),
  },
  { additionalProperties: false },
);
export type Limits = Readonly<Static<typeof Limits>>;

const check = compile(Limits, 'limits');

/** Completes limits with the defaults. @throws RivuletError `validation_failed` that names the limit and what it has to be */
export const parseLimits = (limits: Partial<Limits> = {}): Limits => check(Value.Default(Limits, { ...limits }));

export const defaultLimits: Limits = parseLimits();
