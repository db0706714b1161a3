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
  /** Those of them that `onTokens` was not told of. */
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
export type DeliveryOutcome = 'delivered' | 'retried' | 'failed';

/** A URL that gets no more webhooks of an owner, because all attempts since a time have failed. */
export interface SwitchedOffUrl extends UrlFailures {
  readonly owner: string | null;
  readonly url: string;
}

/** Is told what happens at most once for a run, an attempt, a reply or a commit. Never throws. */
export interface EngineObserver {
  /** A run is final, and that is durable. Called in the process that ended the run. */
  onRunEnded?(run: EndedRun): void;
  /** A run is parked, and that is durable. Called in the process that has tried it. */
  onRunParked?(row: RunRow): void;
  /** A run has used tokens until it awaits, or until another process ended it. */
  onTokens?(owner: string | null, tokens: number): void;
  /** An awaiting run has got its reply, after these seconds. */
  onReply?(agent_name: string, seconds: number): void;
  /** An attempt to deliver a webhook has ended, these seconds after the change that it reports. */
  onDelivery?(outcome: DeliveryOutcome, seconds: number): void;
  /** A webhook was given up without an attempt, because its URL is switched off. */
  onDeliveryRefused?(): void;
  /** A failed attempt has switched off a URL. May come twice, where two attempts fail at the same time. */
  onUrlSwitchedOff?(url: SwitchedOffUrl): void;
  /** The store has taken a commit of some writes, after these seconds. */
  onCommit?(seconds: number, writes: number): void;
}

/** The observers of an engine. Without any, nothing is measured for them. */
export class Observers {
  readonly #all = new Set<EngineObserver>();

  get any(): boolean {
    return this.#all.size > 0;
  }

  /** Returns a function that removes the observer. */
  add(observer: EngineObserver): () => void {
    this.#all.add(observer);
    return () => void this.#all.delete(observer);
  }

  onRunEnded(run: EndedRun): void {
    for (const one of this.#all) one.onRunEnded?.(run);
  }

  onRunParked(row: RunRow): void {
    for (const one of this.#all) one.onRunParked?.(row);
  }

  onTokens(owner: string | null, tokens: number): void {
    for (const one of this.#all) one.onTokens?.(owner, tokens);
  }

  onReply(agent_name: string, seconds: number): void {
    for (const one of this.#all) one.onReply?.(agent_name, seconds);
  }

  onDelivery(outcome: DeliveryOutcome, seconds: number): void {
    for (const one of this.#all) one.onDelivery?.(outcome, seconds);
  }

  onDeliveryRefused(): void {
    for (const one of this.#all) one.onDeliveryRefused?.();
  }

  onUrlSwitchedOff(url: SwitchedOffUrl): void {
    for (const one of this.#all) one.onUrlSwitchedOff?.(url);
  }

  onCommit(seconds: number, writes: number): void {
    for (const one of this.#all) one.onCommit?.(seconds, writes);
  }
}
