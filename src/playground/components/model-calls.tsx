import { useState } from 'preact/hooks';
import type { Diagnostic, ModelCall } from '../../client/client.ts';
import type { FollowedRun } from '../conversation.ts';
import { formatDuration, formatNumber } from '../format.ts';
import { DiagnosticsNote, useDiagnostics } from './diagnostics-note.tsx';
import { JsonView } from './json-view.tsx';
import { ModelMessages } from './model-messages.tsx';
import { RunAgainButton } from './run-again-button.tsx';

/** Calls in the page at once. */
const maxCalls = 50;

const isCall = (one: Diagnostic): one is ModelCall => one.kind === 'model_call';

/** The calls of models that the run's agents have reported: their figures, and on opening what each was told and answered. */
export function ModelCalls({ followed }: { followed: FollowedRun }) {
  const diagnostics = useDiagnostics(followed);
  const [shown, setShown] = useState(maxCalls);
  const calls = diagnostics.entries.value.filter(isCall);
  const first = Math.max(0, calls.length - shown);
  return (
    <>
      <DiagnosticsNote
        diagnostics={diagnostics}
        what="Calls of models"
        empty={
          calls.length === 0 && (
            <>
              No calls. Agents report each call of a model with <code>context.modelCall</code>.
            </>
          )
        }
      />
      {first > 0 && (
        <button type="button" class="quiet more" onClick={() => setShown(shown + maxCalls)}>
          Older ({first})
        </button>
      )}
      <ol class="model-calls">
        {calls.slice(first).map((call, index) => (
          <Call key={first + index} call={call} run_id={followed.record.run_id} />
        ))}
      </ol>
    </>
  );
}

function Call({ call, run_id }: { call: ModelCall; run_id: string }) {
  const [open, setOpen] = useState(false);
  const { request_model, agent_name, path, error, response_finish_reasons: reasons = [], at } = call;
  return (
    <li>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <span class="entry">
            <span class="type">{request_model}</span>
            {path !== undefined && <span class="summary">{agent_name}</span>}
            <span class="reason" data-failed={error !== undefined}>
              {error === undefined ? reasons.join(', ') : 'failed'}
            </span>
            <span class="time">{durationOf(call)}</span>
          </span>
          <span class="figures">{figuresOf(call)}</span>
        </summary>
        {open && (
          <div class="call">
            {error !== undefined && <p class="problem">{error}</p>}
            <Content call={call} />
            <Details call={call} />
            <RunAgainButton run_id={run_id} after={at} />
          </div>
        )}
      </details>
    </li>
  );
}

const durationOf = ({ started_at, ended_at }: ModelCall): string =>
  formatDuration(Math.max(0, Date.parse(ended_at) - Date.parse(started_at)));

/** `first token after 250 ms, 12 tokens in, 3 out`; what is not known is left out. */
function figuresOf({
  response_time_to_first_chunk: first,
  usage_input_tokens: given,
  usage_output_tokens: answered,
}: ModelCall): string {
  return [
    first === undefined ? [] : [`first token after ${formatDuration(first * 1_000)}`],
    given === undefined ? [] : [`${formatNumber(given)} tokens in`],
    answered === undefined ? [] : [`${formatNumber(answered)} tokens out`],
  ]
    .flat()
    .join(' · ');
}

function Content({ call }: { call: ModelCall }) {
  const { input_messages: told, output_messages: answer, tool_definitions: tools, content_omitted } = call;
  if (content_omitted !== undefined)
    return <p class="note">Its {formatNumber(content_omitted)} characters of messages are too many to keep.</p>;
  if (told === undefined && answer === undefined && tools === undefined)
    return (
      <p class="note">
        No messages are kept of this call. The server keeps them with <code>--capture-content on</code>, where the agent
        reports them.
      </p>
    );
  return (
    <>
      {tools !== undefined && tools.length > 0 && (
        <Fold title={`Tools that it may call: ${formatNumber(tools.length)}`} label="the tools" value={tools} />
      )}
      {told !== undefined && <ModelMessages heading="What it was told" messages={told} />}
      {answer !== undefined && <ModelMessages heading="What it answered" messages={answer} />}
    </>
  );
}

/** The other fields: its server, the ids, the times. */
function Details({ call }: { call: ModelCall }) {
  const { input_messages: _, output_messages: __, tool_definitions: ___, ...rest } = call;
  return <Fold title="All fields" label="the call" value={rest} />;
}

interface FoldProps {
  readonly title: string;
  readonly label: string;
  readonly value: unknown;
}

/** JSON that is in the page once it is opened. */
function Fold({ title, label, value }: FoldProps) {
  const [open, setOpen] = useState(false);
  return (
    <details class="fold" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{title}</summary>
      {open && <JsonView label={label} value={value} />}
    </details>
  );
}
