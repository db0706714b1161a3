import { isFinal } from '../core/run-state.ts';
import { hasResult, isCallOnly, type OpenCall, toolChange, withoutResult } from '../core/tool-calls.ts';
import type { TrajectoryMetadata } from '../schema/message.ts';
import type { RunStatus } from '../schema/run.ts';
import type { LoggedEvent } from './run-record.ts';

/** A call of a tool, or a step of the agent's own that names one. */
export interface ListedCall {
  /** The number of the event that began it. */
  readonly begun: number;
  readonly step: TrajectoryMetadata;
  readonly running: boolean;
  /** Milliseconds that it took, where its agent or the page has measured them. */
  readonly time: number | undefined;
}

/**
 * The tools that a run has called, each with its input and its result, in the order of their calls. `timed`: whether the page has
 * seen the events as they came.
 */
export function toolListOf(
  events: readonly LoggedEvent[],
  status: RunStatus | undefined,
  timed: boolean,
): ListedCall[] {
  const calls = new Map<number, ListedCall & { readonly from: number }>();
  let open: readonly OpenCall[] = [];
  for (const { number, at, event } of events) {
    const step = event.type === 'message.part' ? event.part.metadata : undefined;
    if (step?.kind !== 'trajectory' || step.tool_name === undefined) continue;
    const change = toolChange(open, step, number);
    open = change.open;
    const before = change.begins ? undefined : calls.get(change.call.begun);
    const from = before?.from ?? at;
    calls.set(change.call.begun, {
      begun: change.call.begun,
      step: { ...before?.step, ...step },
      running: isCallOnly(step) || (!hasResult(step) && before?.running === true),
      from,
      time: timeOf(step) ?? (timed && before !== undefined ? at - from : before?.time),
    });
  }
  return [...calls.values()].map(({ from: _, ...call }) =>
    call.running && status !== undefined && isFinal(status)
      ? { ...call, running: false, step: { ...call.step, ...withoutResult(status) } }
      : call,
  );
}

/** The time that the agent has measured. */
function timeOf({ started_at, ended_at }: TrajectoryMetadata): number | undefined {
  const time = Date.parse(ended_at ?? '') - Date.parse(started_at ?? '');
  return Number.isNaN(time) ? undefined : time;
}
