import type { JSX } from 'preact';
import { useId, useState } from 'preact/hooks';
import { fieldKind, fieldsOf, isObject, type Problem, parseValue, type ReplySchema } from '../../client/reply-form.ts';
import { type FieldAria, MessageBox } from './message-box.tsx';

export interface FieldProps {
  readonly schema: ReplySchema;
  /** JSON Pointer to the value in the reply, such as `/address/city`; empty for the whole reply. */
  readonly path: string;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  /** The problem that the server has with the reply, shown at the field that it names. */
  readonly problem: Problem;
  readonly required: boolean;
}

/** The input for a schema; for an object, a fieldset with one input for each property. */
export function FormField(props: FieldProps): JSX.Element {
  const { schema, path, value, onChange, problem } = props;
  if (fieldKind(schema) !== 'object') return <SingleField {...props} />;
  const object = isObject(value) ? value : {};
  return (
    <fieldset class={path === '' ? 'all' : undefined}>
      {path !== '' && <legend>{labelOf(props)}</legend>}
      {schema.description !== undefined && <p class="note">{schema.description}</p>}
      {fieldsOf(schema).map(({ name, schema: inner, required }) => (
        <FormField
          key={name}
          schema={inner}
          path={`${path}/${name}`}
          value={object[name]}
          // JSON leaves out undefined values, so an empty optional field is not sent.
          onChange={(next) => onChange({ ...object, [name]: next })}
          problem={problem}
          required={required}
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

function SingleField(props: FieldProps): JSX.Element {
  const { schema, path, problem, required } = props;
  const id = useId();
  const invalid = problem.path === path && problem.text !== '';
  const describedBy = invalid ? `${id}-problem` : schema.description === undefined ? undefined : `${id}-description`;
  return (
    <div class="field" data-kind={fieldKind(schema)}>
      <label for={id}>
        {labelOf(props) || 'Your answer'}
        {!required && <span class="optional"> (optional)</span>}
      </label>
      <Control {...props} id={id} aria={{ 'aria-describedby': describedBy, 'aria-invalid': invalid || undefined }} />
      {schema.description !== undefined && (
        <p class="note" id={`${id}-description`}>
          {schema.description}
        </p>
      )}
      {invalid && (
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
  switch (fieldKind(schema)) {
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
          {choices.map((choice, index) => (
            <option key={`${index}`} value={index} selected={choice === value}>
              {String(choice)}
            </option>
          ))}
        </select>
      );
    }
    case 'list':
      return <LineList value={value} onChange={onChange} id={id} aria={aria} />;
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
      return <JsonEditor schema={schema} value={value} onChange={onChange} id={id} aria={aria} />;
  }
}

type TextProps = Pick<ControlProps, 'value' | 'onChange' | 'id' | 'aria'>;

/** An array of strings, one per line. */
function LineList({ value, onChange, id, aria }: TextProps) {
  const lines = Array.isArray(value) ? value.join('\n') : '';
  return (
    <textarea
      {...aria}
      id={id}
      rows={3}
      placeholder="One per line"
      value={lines}
      onInput={({ currentTarget: { value: text } }) => onChange(text === '' ? undefined : text.split('\n'))}
    />
  );
}

/** Any value as JSON. Invalid JSON is sent as a string, which the server refuses. */
function JsonEditor({ schema, value, onChange, id, aria }: TextProps & Pick<ControlProps, 'schema'>) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2));
  const change = (next: string): void => {
    setText(next);
    onChange(next.trim() === '' ? undefined : parseValue(next, schema));
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
