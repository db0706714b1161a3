import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { compile } from '../core/validate.ts';

const hour = 3_600_000;
/** Node's timers cannot wait longer: they would fire at once. */
const longestTimer = 2 ** 31 - 1;
/** A hundred years in milliseconds: with any time up to this, dates stay in the range that JSON can have. */
const longestTime = 3_155_760_000_000;

const number = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });
const time = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 0, maximum: longestTime, description });
/** Milliseconds of a timer. */
export const timer = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 0, maximum: longestTimer, description });
/** Milliseconds of a timer that has to run. */
export const positiveTimer = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, maximum: longestTimer, description });

/** The default of `commitInterval` where nodes share the store. */
const sharedCommitInterval = 15;

/**
 * The limits of a server and its runs. A run that exceeds one of its limits fails; the server goes on. Where zero is
 * allowed, it means no limit. Times are in milliseconds.
 */
export const Limits = Type.Object(
  {
    events: number(1_000_000, 'Events that one run may have.'),
    chars: number(256 * 1024 * 1024, 'Characters of JSON that one run may write.'),
    backlog: number(256 * 1024, 'Characters that may wait for the store before an agent’s iterable is paused.'),
    running: number(
      10_000,
      'Runs that one process may execute at once; awaiting and queued runs do not count. Further runs are refused with 503; with a shared store they wait until a node has room.',
    ),
    tokens: number(0, 'Tokens that one run may report; a run that reports more fails.'),
    queued: number(1_000, 'Unfinished runs that one session may have; further runs are refused with 429.'),
    cancelGrace: timer(5_000, 'Time that a cancelled agent has to stop.'),
    runTimeout: time(hour, 'Time that a run may work; its awaits do not count.'),
    awaitTimeout: time(7 * 24 * hour, 'Time that a run may await a reply.'),
    idleTimeout: time(hour / 6, 'Time that a working run may emit nothing.'),
    passivateAfter: time(60_000, 'Time after which an awaiting durable run leaves memory.'),
    attempts: number(3, 'Times that a durable run may be re-entered without progress.'),
    runTtl: time(30 * 24 * hour, 'Time that a final run is kept.'),
    webhookRetry: positiveTimer(
      5_000,
      'Time before the second attempt of a webhook; the ten attempts then take 76 hours.',
    ),
    webhookOffAfter: time(
      5 * 24 * hour,
      'Time after which a URL of webhooks is switched off, if all attempts in it have failed.',
    ),
    deliveryTtl: time(30 * 24 * hour, 'Time that a webhook is kept after it was sent.'),
    idempotencyTtl: time(24 * hour, 'Time that an Idempotency-Key is kept.'),
    shutdownGrace: timer(10_000, 'Time that runs, and steps of durable runs, get to end when the server stops.'),
    sweepInterval: positiveTimer(1_000, 'Time between two checks of these times.'),
    lease: positiveTimer(6_000, 'Time after which other nodes execute the runs of a node that died.'),
    pollInterval: positiveTimer(
      5_000,
      'Time between two polls for writes of other nodes, in case a notification was lost.',
    ),
    commitInterval: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: longestTimer,
        description: `Time between two commits of tokens; 0 commits at once. Default: ${sharedCommitInterval} where nodes share the store, else 0.`,
      }),
    ),
    requestTimeout: positiveTimer(5_000, 'Time that a request waits for a store that does not answer.'),
    storeTimeout: positiveTimer(60_000, 'Time for which a failed commit is retried, before its runs fail.'),
    sessionTtl: time(30 * 24 * hour, 'Time that a session without runs is kept after its last write.'),
  },
  { additionalProperties: false },
);
export type Limits = Readonly<Static<typeof Limits>>;

const check = compile(Limits, 'limits');

/**
 * Completes limits with the defaults.
 * @throws RivuletError `validation_failed` that names the limit and its valid values
 */
export const parseLimits = (limits: Partial<Limits> = {}): Limits => check(Value.Default(Limits, { ...limits }));

export const defaultLimits: Limits = parseLimits();

export const commitIntervalOf = ({ commitInterval }: Limits, isShared: boolean): number =>
  commitInterval ?? (isShared ? sharedCommitInterval : 0);

/** Milliseconds for which final runs are kept, by owner, such as `key:alice` or `tenant:acme`. */
export type RunTtlByOwner = Readonly<Record<string, number>>;
