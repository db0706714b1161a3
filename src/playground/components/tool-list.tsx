import { useState } from 'preact/hooks';
import type { FollowedRun } from '../conversation.ts';
import { toolListOf } from '../tool-list.ts';
import { RunAgainButton } from './run-again-button.tsx';
import { StepLine } from './steps.tsx';

/** Calls in the page at once. */
const maxCalls = 100;

/** The tools that the run has called: input, output or error, and the time that each took. */
export function ToolList({ followed: { record } }: { followed: FollowedRun }) {
  const [shown, setShown] = useState(maxCalls);
  const calls = toolListOf(record.events, record.run?.status, record.createdHere);
  const first = Math.max(0, calls.length - shown);
  return (
    <>
      {calls.length === 0 && (
        <p class="note">
          No tools. Agents show each call of a tool with <code>context.tool</code> or a trajectory.
        </p>
      )}
      {first > 0 && (
        <button type="button" class="quiet more" onClick={() => setShown(shown + maxCalls)}>
          Older ({first})
        </button>
      )}
      <ol class="steps tools">
        {calls.slice(first).map(({ begun, step, running, time }) => (
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
