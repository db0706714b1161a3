import { fail } from './errors.ts';
import type { RunRow } from './ports/run-store.ts';

/** What gets the changes of status of a run. */
export interface PushTarget {
  /** Unique in its run; absent for the webhook that the run was made with. */
  readonly id?: string;
  readonly url: string;
  /** The types of the events that it gets. Default: of a webhook, those that settle the run; of others, all. */
  readonly events?: readonly string[];
  /** The name of the `PushForm` that writes to it; absent where it gets webhooks. */
  readonly form?: string;
  /** What the receiver knows the run's conversation by, where that is not its session. */
  readonly conversation?: string;
  /** Secrets of the receiver, which only its own requests carry. */
  readonly token?: string;
  readonly authentication?: { readonly scheme: string; readonly credentials?: string };
}

/** A change of status, as the event `line` says it. */
export interface ReportedChange {
  readonly status: string;
  readonly line: string;
  readonly row: RunRow;
  readonly now: string;
}

/** How another protocol writes to its targets. */
export interface PushForm {
  /** Called in the path of a commit, which waits for it: it has to be quick, and must not throw. */
  readonly bodyOf: (change: ReportedChange, target: PushTarget) => string;
  /** The headers by which the receiver knows the server. */
  readonly headersOf: (target: PushTarget) => Readonly<Record<string, string>>;
}

/** By the name of the form. */
export type PushForms = Readonly<Record<string, PushForm>>;

/** Targets of one run: each change of status is written once for each of them. */
const maxTargets = 10;
/** Characters of all of them: each read of the run's row has them. */
const maxChars = 32 * 1024;

/** The targets of a run. They were written by this or another node: see `RunRow.targets`. */
export const targetsOf = ({ targets }: Pick<RunRow, 'targets'>): PushTarget[] =>
  targets === null ? [] : JSON.parse(targets);

/** Targets as a row has them; null for none. @throws RivuletError `validation_failed` where there are too many */
export function encodeTargets(targets: readonly PushTarget[]): string | null {
  const text = targets.length === 0 ? null : JSON.stringify(targets);
  if (targets.length > maxTargets || (text?.length ?? 0) > maxChars) {
    const most = `expected at most ${maxTargets} targets of a run, and ${maxChars} characters of all; remove one`;
    throw fail('validation_failed', 'url', most);
  }
  return text;
}
