import type { UrlFailures } from '../core/ports/outbox.ts';
import type { RunRow } from '../core/ports/run-store.ts';
import type { SpanIds } from '../core/ports/traces.ts';
import type { ErrorBody } from '../schema/error.ts';

/** What the execution of a run has measured. Times are seconds. */
export interface RunWork {
  /** The time at work, in all executions of the run; its awaits do not count. */
  readonly seconds: number;
  readonly parts: number;
  /** Tokens that the agent reported; otherwise its parts. */
  readonly tokens: number;
  /** Those of them that no event `tokens` has reported. */
  readonly sinceAwait: number;
  /** From the creation of the run to its start. Undefined where an earlier execution started it. */
  readonly queued?: number | undefined;
  /** From the creation of the run to its first part. Undefined as above, and for a run without parts. */
  readonly firstPart?: number | undefined;
  /** The mean time between two parts. Undefined as above, and for a run that awaited or has one part. */
  readonly perPart?: number | undefined;
}

/** A run that is final. */
export interface EndedRun {
  readonly row: RunRow;
  readonly error?: ErrorBody | undefined;
  /** The stack of what the agent threw, or the error's message. For the server's log, never for clients. */
  readonly failure?: string | undefined;
  /** Undefined where the run had no execution in this process: it was ended in the store. */
  readonly work?: RunWork;
  /** The last span of the run. Undefined without traces, and as above. */
  readonly span?: SpanIds | undefined;
}

/** `retried`: another attempt follows. `failed`: none does. */
type DeliveryOutcome = 'delivered' | 'retried' | 'failed';

/** A URL that gets no more webhooks of an owner, because all attempts since a time have failed. */
interface SwitchedOffUrl extends UrlFailures {
  readonly owner: string | null;
  readonly url: string;
}

/** What happens at most once for a run, an attempt, a reply or a commit. No listener may throw. */
export interface EngineEvents {
  /** A run is final, and that is durable. Emitted in the process that ended the run. */
  runEnded: [EndedRun];
  /** A run is parked, and that is durable. Emitted in the process that has tried it. */
  runParked: [RunRow];
  /** A run has used tokens until it awaits, or until another process ended it. */
  tokens: [owner: string | null, tokens: number];
  /** An awaiting run has got its reply, after these seconds. */
  reply: [agent_name: string, seconds: number];
  /** An attempt to deliver a webhook has ended, these seconds after the change that it reports. */
  delivery: [DeliveryOutcome, seconds: number];
  /** A webhook was given up without an attempt, because its URL is switched off. */
  deliveryRefused: [];
  /** A failed attempt has switched off a URL. May come twice, where two attempts fail at the same time. */
  urlSwitchedOff: [SwitchedOffUrl];
  /** The store has taken a commit of some writes, after these seconds. */
  commit: [seconds: number, writes: number];
}
