import type { TrajectoryMetadata } from '../../schema/message.ts';

/** How the agent came to its answer, folded. */
export function Steps({ steps }: { steps: readonly TrajectoryMetadata[] }) {
  return (
    <details class="steps">
      <summary>{steps.length === 1 ? 'One step' : `${steps.length} steps`}</summary>
      <ol>
        {steps.map(({ message, tool_name, tool_input, tool_output }, at) => (
          <li key={`${at}`}>
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
