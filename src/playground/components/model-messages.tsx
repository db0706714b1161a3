import { useState } from 'preact/hooks';
import type { ModelMessage, ModelPart } from '../../schema/diagnostic.ts';
import { formatNumber } from '../format.ts';
import { JsonView } from './json-view.tsx';
import { LongText } from './long-text.tsx';

/** Messages in the page at once: the newest. */
const maxMessages = 20;
/** Characters of a message in its line. */
const maxPreview = 120;

/** The messages of a model, each in a line that opens. What they say is text, and never HTML. */
export function ModelMessages({ heading, messages }: { heading: string; messages: readonly ModelMessage[] }) {
  const [shown, setShown] = useState(maxMessages);
  const first = Math.max(0, messages.length - shown);
  return (
    <section class="told" aria-label={heading}>
      <h3>{heading}</h3>
      {first > 0 && (
        <button type="button" class="quiet more" onClick={() => setShown(shown + maxMessages)}>
          {formatNumber(first)} earlier messages
        </button>
      )}
      <ol>
        {messages.slice(first).map((message, index) => (
          // The last one is what the model answers, or has answered.
          <Told key={first + index} message={message} isOpen={first + index === messages.length - 1} />
        ))}
      </ol>
    </section>
  );
}

function Told({ message, isOpen }: { message: ModelMessage; isOpen: boolean }) {
  const [open, setOpen] = useState(isOpen);
  return (
    <li data-role={message.role}>
      <details open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary class="entry">
          <span class="type">{message.role}</span>
          <span class="summary">{open ? '' : previewOf(message)}</span>
        </summary>
        {open && message.parts.map((part, index) => <Part key={index} part={part} />)}
      </details>
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
      {type !== 'text' && <p class="heading">{type}</p>}
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
