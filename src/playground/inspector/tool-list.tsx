import { isFinal } from '../../core/run-state.ts';
import { hasResult, isCallOnly, type OpenCall, toolChange, withoutResult } from '../../core/tool-calls.ts';
import type { TrajectoryMetadata } from '../../schema/message.ts';
import type { RunStatus } from '../../schema/run.ts';
import type { FollowedRun } from '../conversation/conversation.ts';
import { StepLine } from '../conversation/steps.tsx';
import { useNewest } from '../elements/controls.tsx';
import { RunAgainButton } from './run-again-button.tsx';
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

/** Calls in the page at once. */
const maxCalls = 100;

/** The tools that the run has called: input, output or error, and the time that each took. */
export function ToolList({ followed: { record } }: { followed: FollowedRun }) {
  const calls = toolListOf(record.events, record.run?.status, record.createdHere);
  const { newest, older } = useNewest(calls, maxCalls);
  return (
    <>
      {calls.length === 0 && (
        <p class="note">
          No tools. Agents show each call of a tool with <code>context.tool</code> or a trajectory.
        </p>
      )}
      {older}
      <ol class="steps tools stack">
        {newest.map(({ begun, step, running, time }) => (
          <li key={begun}>
            <StepLine {...step} running={running} time={time} />
            <p class="note">
              Event {begun} <RunAgainButton run_id={record.run_id} after={begun} />
            </p>
          </li>
        ))}
      </ol>
    </>
  );
}
