import type { Extras } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Diagnostic } from '../../schema/diagnostic.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { AwaitResume, RunUsage } from '../../schema/run.ts';
import { parseLine } from './stored-run.ts';

// The journal of a run has lines beside its events, which readers of the run do not get. How a line begins tells what it is.

/** An entry: what the agent of a durable run has received, which a replay gives it again. */
const entryStart = '{"at":';
/** A reply or a cancel that waits for the node that executes the run. */
const forwardedStart = '{"forwarded":';
/** A call of a model, or a line of `context.log`. */
const diagnosticStart = '{"diagnostic":';

/**
 * What a durable run's agent receives: a value, the end or the error of a step, or the reply that the run has accepted.
 */
export type Delivery =
  | (StepId & { readonly value: readonly [] | readonly [unknown] }) // `undefined` is a value as well
  | (StepId & { readonly done: true })
  | (StepId & { readonly error: ErrorBody })
  | (StepId & { readonly restarted: true }) // its work was cut off, and says something else now: from its beginning
  | { readonly answered: true };

/** A step; see `Scope.nextStep`. `inside`: it began in the work of another step. */
interface StepId {
  readonly step: string;
  readonly inside?: true;
}

/**
 * An entry of a durable run's journal. `at` is the id of the last event before it, `ms` the time that the run had worked.
 * Everything in one `give` was delivered together. Between two lines the agent did all that it could do without the
 * second. `cancelled`: the run was cancelled, so that the agent cleans up from then on. `usage`: the work of a step has used
 * tokens. `beside`: the next event comes from the work of a step.
 */
export type JournalEntry = { readonly at: number; readonly ms?: number } & (
  | { readonly give: readonly Delivery[] }
  | { readonly reply: AwaitResume }
  | { readonly step: string; readonly usage: RunUsage }
  | { readonly beside: true }
  | { readonly cancelled: true; readonly reason?: string }
);

/** `body`: the JSON of the rest of the entry, without its braces. */
export const entryLine = (at: number, ms: number, body: string): string => `${entryStart}${at},"ms":${ms},${body}}`;

/** The entry of a reply to a run that no process executes. */
export const replyLine = (at: number, reply: AwaitResume): string =>
  JSON.stringify({ at, reply } satisfies JournalEntry);

/** The entry of a cancel. */
export const cancelLine = (at: number, reason?: string): string =>
  JSON.stringify({ at, cancelled: true, ...(reason !== undefined && { reason }) } satisfies JournalEntry);

/** The entries of a durable run's journal. @throws RivuletError `log_damaged`, and any error of the store */
export const journalOf = async (store: Store, run_id: string): Promise<JournalEntry[]> =>
  linesOf<JournalEntry>(run_id, await store.journal(run_id), entryStart);

/** A reply that another node has stored for the node that executes the run. `forwarded` is its id. */
export interface ForwardedReply {
  readonly forwarded: string;
  /** The id of the event that asked the question. */
  readonly at: number;
  readonly reply: AwaitResume;
  /** Data that the node commits when it accepts the reply. */
  readonly extras: Extras;
  /** What the reply's request is in the traces. */
  readonly trace?: string;
}

/** A cancel that waits there as well. With the id of a question, it is for as long as the run asks that. */
export interface ForwardedCancel {
  readonly forwarded: string;
  readonly cancel: true;
  readonly question?: string;
  readonly reason?: string;
}

export type Forwarded = ForwardedReply | ForwardedCancel;

export const forwardedLine = ({ forwarded, ...rest }: Forwarded): string => JSON.stringify({ forwarded, ...rest });

/** What other nodes have forwarded to a run. @throws RivuletError `log_damaged` */
export const forwardedIn = (run_id: string, journal: readonly string[]): Forwarded[] =>
  linesOf<Forwarded>(run_id, journal, forwardedStart);

/** Written by the node that executes the run: the id of a forwarded reply that the run has accepted. */
export const acceptedLine = (forwarded: string): string => JSON.stringify({ taken: forwarded });

export const diagnosticLine = (diagnostic: Diagnostic): string => `${diagnosticStart}${JSON.stringify(diagnostic)}}`;

/** The JSON of the diagnostics in a journal. */
export const diagnosticsIn = (journal: readonly string[]): string[] =>
  journal.filter((line) => line.startsWith(diagnosticStart)).map((line) => line.slice(diagnosticStart.length, -1));

/** A journal may have thousands of other lines, which are not parsed. */
const linesOf = <Line extends object>(run_id: string, journal: readonly string[], start: string): Line[] =>
  journal.filter((line) => line.startsWith(start)).map((line) => parseLine<Line>(run_id, line));
