import type { Store } from '../../core/ports/store.ts';
import type { Diagnostic } from '../../schema/diagnostic.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { AwaitResume, RunUsage } from '../../schema/run.ts';
import { parseLine } from './stored-run.ts';

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
 * A line of a durable run's journal. `at` is the id of the last event before it, `ms` the time that the run had worked.
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

/** Whether a line of the journal is one of these. Other nodes leave lines of their own there; see `forward.ts`. */
const isJournalEntry = (line: object): line is JournalEntry =>
  kinds.some((kind) => kind in line) || ('reply' in line && !('forwarded' in line));

const kinds = ['give', 'cancelled', 'usage', 'beside'] as const;

/** The line of the journal with which a run is cancelled that is not live. */
export const cancelEntry = (at: number, reason?: string): string =>
  JSON.stringify({ at, cancelled: true, ...(reason !== undefined && { reason }) } satisfies JournalEntry);

/** The journal of a durable run. @throws RivuletError `log_damaged`, and any error of the store */
export const journalOf = async (store: Store, run_id: string): Promise<JournalEntry[]> =>
  (await store.journal(run_id))
    .filter((line) => !isDiagnosticLine(line))
    .map((line) => parseLine<object>(run_id, line))
    .filter(isJournalEntry);

/** How a line of the journal begins that is a diagnostic. A replay passes over such lines. */
const prefix = '{"diagnostic":';

export const diagnosticLine = (diagnostic: Diagnostic): string => `${prefix}${JSON.stringify(diagnostic)}}`;

export const isDiagnosticLine = (line: string): boolean => line.startsWith(prefix);

/** The JSON of the diagnostic in a line. */
export const diagnosticIn = (line: string): string => line.slice(prefix.length, -1);
