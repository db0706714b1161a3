import type { Diagnostic, ModelCall } from '../../client/client.ts';
import type { ModelMessage, ModelPart } from '../../schema/diagnostic.ts';
import type { FollowedRun } from '../conversation/conversation.ts';
import { Fold, useNewest } from '../elements/controls.tsx';
import { formatDuration, formatNumber } from '../elements/format.ts';
import { JsonView, LongText } from '../elements/json-view.tsx';
import { DiagnosticsNote, useDiagnostics } from './diagnostics.tsx';
import { RunAgainButton } from './run-again-button.tsx';

/** Calls in the page at once. */
const maxCalls = 50;

const isCall = (one: Diagnostic): one is ModelCall => one.kind === 'model_call';

/** The calls of models that the run's agents have reported: their figures, and on opening what each was told and answered. */
export function ModelCalls({ followed }: { followed: FollowedRun }) {
  const diagnostics = useDiagnostics(followed);
  const calls = diagnostics.entries.value.filter(isCall);
  const { newest, first, older } = useNewest(calls, maxCalls);
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
      {older}
      <ol class="model-calls lines">
        {newest.map((call, index) => (
          <Call key={first + index} call={call} run_id={followed.record.run_id} />
        ))}
      </ol>
    </>
  );
}

function Call({ call, run_id }: { call: ModelCall; run_id: string }) {
  const { request_model, agent_name, path, error, response_finish_reasons: reasons = [], at } = call;
  return (
    <li>
      <Fold
        class="entry"
        summary={
          <>
            <span class="type">{request_model}</span>
            {path !== undefined && <span class="summary">{agent_name}</span>}
            <span class="end" data-failed={error !== undefined}>
              {error === undefined ? reasons.join(', ') : 'failed'}
            </span>
            <span class="time">{durationOf(call)}</span>
            <small>{figuresOf(call)}</small>
          </>
        }
      >
        {error !== undefined && <p class="problem">{error}</p>}
        <Content call={call} />
        <Details call={call} />
        <RunAgainButton run_id={run_id} after={at} />
      </Fold>
    </li>
  );
}

const durationOf = ({ started_at, ended_at }: ModelCall): string =>
  formatDuration(Math.max(0, Date.parse(ended_at) - Date.parse(started_at)));

/** `first token after 250 ms, 12 tokens in, 3 out`, without the figures that are not known. */
function figuresOf({
  response_time_to_first_chunk: first,
  usage_input_tokens: given,
  usage_output_tokens: answered,
}: ModelCall): string {
  return [
    first !== undefined && `first token after ${formatDuration(first * 1_000)}`,
    given !== undefined && `${formatNumber(given)} tokens in`,
    answered !== undefined && `${formatNumber(answered)} tokens out`,
  ]
    .filter(Boolean)
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
        <Fold class="more" summary={`Tools that it may call: ${formatNumber(tools.length)}`}>
          <JsonView label="the tools" value={tools} />
        </Fold>
      )}
      {told !== undefined && <ModelMessages heading="What it was told" messages={told} />}
      {answer !== undefined && <ModelMessages heading="What it answered" messages={answer} />}
    </>
  );
}

/** The other fields: its server, the ids, the times. */
function Details({ call }: { call: ModelCall }) {
  const { input_messages: _, output_messages: __, tool_definitions: ___, ...rest } = call;
  return (
    <Fold class="more" summary="All fields">
      <JsonView label="the call" value={rest} />
    </Fold>
  );
}

/** Messages in the page at once: the newest. */
const maxMessages = 20;
/** Characters of a message in its line. */
const maxPreview = 120;

/** The messages of a model, each in a line that opens. What they say is text, and never HTML. */
function ModelMessages({ heading, messages }: { heading: string; messages: readonly ModelMessage[] }) {
  const nameOf = (count: number): string => `${formatNumber(count)} earlier messages`;
  const { newest, first, older } = useNewest(messages, maxMessages, nameOf);
  return (
    <section class="told" aria-label={heading}>
      <h3>{heading}</h3>
      {older}
      <ol class="lines">
        {newest.map((message, index) => (
          // The last one is what the model answers, or has answered.
          <Told key={first + index} message={message} isOpen={first + index === messages.length - 1} />
        ))}
      </ol>
    </section>
  );
}

function Told({ message, isOpen }: { message: ModelMessage; isOpen: boolean }) {
  return (
    <li data-role={message.role}>
      <Fold
        class="entry"
        isOpen={isOpen}
        summary={(open) => (
          <>
            <span class="type">{message.role}</span>
            <span class="summary clip">{open ? '' : previewOf(message)}</span>
          </>
        )}
      >
        {message.parts.map((part, index) => (
          <Part key={index} part={part} />
        ))}
      </Fold>
    </li>
  );
}

function Part({ part }: { part: ModelPart }) {
  const { type, content, name, id } = part;
  if (type === 'tool_call')
    return <JsonView heading={`Calls ${name ?? 'a tool'}${idText(id)}`} label="the arguments" value={part.arguments} />;
  if (type === 'tool_call_response')
    return <JsonView heading={`Result${idText(id)}`} label="the result" value={part.response} />;
  if (typeof content !== 'string') return <JsonView heading={type} label={`the ${type}`} value={part} />;
  return (
    <div class="piece">
      {type !== 'text' && <p class="note">{type}</p>}
      <LongText text={content} />
    </div>
  );
}

const idText = (id: string | undefined): string => (id === undefined ? '' : ` (${id})`);

/** The beginning of a message, in one line. */
function previewOf({ parts }: ModelMessage): string {
  const [part] = parts;
  if (part === undefined) return '';
  const { type, content, name, response } = part;
  const text = typeof content === 'string' ? content.slice(0, maxPreview) : type === 'tool_call' ? `calls ${name}` : '';
  if (text !== '' || response === undefined) return text || type;
  return (typeof response === 'string' ? response : 'a result').slice(0, maxPreview);
}
