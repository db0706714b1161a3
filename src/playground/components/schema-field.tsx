import type { JSX } from 'preact';
import { useId, useState } from 'preact/hooks';
import { kindOf, type Problem, type Schema } from '../question.ts';
import { type FieldAria, MessageBox } from './message-box.tsx';

export interface FieldProps {
  readonly schema: Schema;
  /** Where its value is in the reply, such as `/address/city`; empty for all of it. */
  readonly path: string;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  /** What the server has against the reply: shown at the field that it names. */
  readonly problem: Problem;
  readonly required: boolean;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A field for a schema, or fields within a frame for an object's. */
export function SchemaField(props: FieldProps): JSX.Element {
  const { schema, path, value, onChange, problem } = props;
  if (kindOf(schema) !== 'object') return <Single {...props} />;
  const known = isRecord(value) ? value : {};
  return (
    <fieldset class={path === '' ? 'all' : undefined}>
      {path !== '' && <legend>{labelOf(props)}</legend>}
      {schema.description !== undefined && <p class="hint">{schema.description}</p>}
      {Object.entries(schema.properties ?? {}).map(([name, inner]) => (
        <SchemaField
          key={name}
          schema={inner}
          path={`${path}/${name}`}
          value={known[name]}
          // What is undefined is not sent, so an empty optional field is left out.
          onChange={(next) => onChange({ ...known, [name]: next })}
          problem={problem}
          required={schema.required?.includes(name) ?? false}
        />
      ))}
      {problem.path === path && problem.text !== '' && (
        <p class="problem" role="alert">
          {problem.text}
        </p>
      )}
    </fieldset>
  );
}

const labelOf = ({ schema, path }: FieldProps): string => schema.title ?? path.split('/').at(-1) ?? '';

function Single(props: FieldProps): JSX.Element {
  const { schema, path, problem, required } = props;
  const id = useId();
  const objects = problem.path === path && problem.text !== '';
  const described = objects ? `${id}-problem` : schema.description === undefined ? undefined : `${id}-hint`;
  return (
    <div class="field" data-kind={kindOf(schema)}>
      <label for={id}>
        {labelOf(props) || 'Your answer'}
        {!required && <span class="optional"> (optional)</span>}
      </label>
      <Control {...props} id={id} aria={{ 'aria-describedby': described, 'aria-invalid': objects || undefined }} />
      {schema.description !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {schema.description}
        </p>
      )}
      {objects && (
        <p class="problem" id={`${id}-problem`} role="alert">
          {problem.text}
        </p>
      )}
    </div>
  );
}

interface ControlProps extends FieldProps {
  readonly id: string;
  readonly aria: FieldAria;
}

function Control({ schema, value, onChange, required, id, aria }: ControlProps): JSX.Element {
  switch (kindOf(schema)) {
    case 'boolean':
      return (
        <input
          {...aria}
          id={id}
          type="checkbox"
          checked={value === true}
          onChange={(e) => onChange(e.currentTarget.checked)}
        />
      );
    case 'number':
      return (
        <input
          {...aria}
          id={id}
          type="number"
          step={schema.type === 'integer' ? 1 : 'any'}
          min={schema.minimum}
          max={schema.maximum}
          value={typeof value === 'number' ? value : ''}
          onInput={(e) => onChange(e.currentTarget.value === '' ? undefined : e.currentTarget.valueAsNumber)}
        />
      );
    case 'choice': {
      const choices = schema.enum ?? [];
      return (
        <select {...aria} id={id} onChange={(e) => onChange(choices[Number(e.currentTarget.value)])}>
          <option value={-1} selected={value === undefined} disabled={required}>
            Choose…
          </option>
          {choices.map((choice, at) => (
            <option key={`${at}`} value={at} selected={choice === value}>
              {String(choice)}
            </option>
          ))}
        </select>
      );
    }
    case 'list':
      return <Lines value={value} onChange={onChange} id={id} aria={aria} />;
    case 'text':
      return (
        <MessageBox
          id={id}
          aria={aria}
          value={typeof value === 'string' ? value : ''}
          onInput={(text) => onChange(text === '' && !required ? undefined : text)}
        />
      );
    default:
      return <Json value={value} onChange={onChange} id={id} aria={aria} />;
  }
}

type TextProps = Pick<ControlProps, 'value' | 'onChange' | 'id' | 'aria'>;

/** An array of texts: one a line. */
function Lines({ value, onChange, id, aria }: TextProps) {
  const lines = Array.isArray(value) ? value.join('\n') : '';
  return (
    <textarea
      {...aria}
      id={id}
      rows={3}
      placeholder="One a line"
      value={lines}
      onInput={({ currentTarget: { value: text } }) => onChange(text === '' ? undefined : text.split('\n'))}
    />
  );
}

/** Whatever no other field is made for. What is not JSON yet is sent as the text that it is, and the server says so. */
function Json({ value, onChange, id, aria }: TextProps) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2));
  const change = (next: string): void => {
    setText(next);
    onChange(parsed(next));
  };
  return (
    <textarea
      {...aria}
      id={id}
      rows={4}
      class="code"
      placeholder="JSON"
      value={text}
      onInput={(e) => change(e.currentTarget.value)}
    />
  );
}

function parsed(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
