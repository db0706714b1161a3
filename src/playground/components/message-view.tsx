import { useMemo } from 'preact/hooks';
import type { MessagePart } from '../../client/client.ts';
import type { TrajectoryMetadata } from '../../schema/message.ts';
import { contentOf } from '../content.ts';
import { ArtifactView } from './artifact-view.tsx';
import { Markdown } from './markdown.tsx';

/** The fields of a message that are shown. */
interface ShownMessage {
  readonly role: string;
  readonly parts: readonly MessagePart[];
}

/** A message. It is memoized: an unchanged message is the same object in each frame. */
export function MessageView({ message }: { message: ShownMessage }) {
  return useMemo(() => {
    const { text, citations, steps, artifacts } = contentOf(message.parts);
    const byUser = message.role === 'user';
    return (
      <div class={byUser ? 'message user' : 'message'}>
        <p class="role">{byUser ? 'You' : message.role.replace(/^agent\//, '')}</p>
        {byUser ? <p class="said">{text}</p> : <Markdown text={text} citations={citations} />}
        {artifacts.length > 0 && (
          <ul class="artifacts">
            {artifacts.map((part, at) => (
              <li key={`${at}`}>
                <ArtifactView part={part} />
              </li>
            ))}
          </ul>
        )}
        {steps.length > 0 && <Steps steps={steps} />}
      </div>
    );
  }, [message]);
}

/** The steps that led to the output, collapsed. */
function Steps({ steps }: { steps: readonly TrajectoryMetadata[] }) {
  return (
    <details class="steps">
      <summary>{steps.length === 1 ? 'One step' : `${steps.length} steps`}</summary>
      <ol>
        {steps.map(({ message, tool_name, tool_input, tool_output }, index) => (
          <li key={`${index}`}>
            {tool_name !== undefined && <code>{tool_name}</code>} {message}
            {tool_input !== undefined && <Data label="in" value={tool_input} />}
            {tool_output !== undefined && <Data label="out" value={tool_output} />}
          </li>
        ))}
      </ol>
    </details>
  );
}

const Data = ({ label, value }: { label: string; value: object }) => (
  <pre>
    <span>{label}</span> {JSON.stringify(value)}
  </pre>
);
