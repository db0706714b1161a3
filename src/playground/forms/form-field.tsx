import type { JSX } from 'preact';
import { useId, useState } from 'preact/hooks';
import { isObject } from '../../core/json.ts';
import { readValue } from '../../forms/reply-check.ts';
import {
  choicesOf,
  type FieldKind,
  fieldKind,
  fieldsOf,
  initialValue,
  type Problem,
  parseValue,
  pointerTo,
  type ReplySchema,
} from '../../forms/reply-form.ts';
import { type FieldAria, MessageBox, Problems } from '../elements/controls.tsx';

export interface FieldProps {
  readonly schema: ReplySchema;
  /** JSON Pointer to the value in the reply, such as `/address/city`; empty for the whole reply. */
  readonly path: string;
  /** The property's name; without one, the field is the whole reply. */
  readonly name?: string;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  /** The problems that the server has with the reply, each shown at the field that it names. */
  readonly problems: readonly Problem[];
  readonly required: boolean;
}

/** The input for a schema; for an object, a group with one input for each property. */
export function FormField(props: FieldProps): JSX.Element {
  if (fieldKind(props.schema) !== 'object') return <SingleField {...props} />;
  return props.path === '' ? <ObjectFields {...props} /> : <ObjectGroup {...props} />;
}

const labelOf = ({ schema, name }: FieldProps): string => schema.title ?? name ?? 'Your answer';

/** A group with a border and a name. An optional one is left out of the reply until the user adds it. */
function ObjectGroup(props: FieldProps): JSX.Element {
  const { schema, value, onChange, required } = props;
  const label = labelOf(props);
  if (!required && value === undefined) {
    return (
      <button type="button" class="quiet" onClick={() => onChange(initialValue(schema))}>
        + {label} <span class="optional">(optional)</span>
      </button>
    );
  }
  return (
    <fieldset class="stack">
      <legend>
        {label}
        {!required && (
          <button type="button" class="quiet" aria-label={`Leave out ${label}`} onClick={() => onChange(undefined)}>
            Leave out
          </button>
        )}
      </legend>
      <ObjectFields {...props} />
    </fieldset>
  );
}

function ObjectFields({ schema, path, value, onChange, problems }: FieldProps): JSX.Element {
  const object = isObject(value) ? value : {};
  const fields = fieldsOf(schema);
  const paths = fields.map(({ name }) => pointerTo(path, name));
  // Of the object itself, or of something in it that has no field.
  const own = problems.filter(
    (problem) =>
      problem.path === path ||
      (problem.path.startsWith(`${path}/`) &&
        !paths.some((inner) => problem.path === inner || problem.path.startsWith(`${inner}/`))),
  );
  return (
    <div class="fields stack">
      {schema.description !== undefined && <p class="note">{schema.description}</p>}
      <Problems texts={own.map(({ path: at, text }) => (at === path ? text : `${at}: ${text}`))} />
      {fields.map(({ name, schema: inner, required }, index) => (
        <FormField
          key={name}
          schema={inner}
          name={name}
          path={paths[index] ?? ''}
          value={object[name]}
          // JSON leaves out undefined values, so an empty optional field is not sent.
          onChange={(next) => onChange({ ...object, [name]: next })}
          problems={problems}
          required={required}
        />
      ))}
    </div>
  );
}

/** Kinds with several controls, which a label element cannot name. */
const composite: readonly string[] = ['boolean', 'choices'];

function SingleField(props: FieldProps): JSX.Element {
  const { schema, path, problems, required } = props;
  const id = useId();
  const kind = fieldKind(schema);
  const Control = controls[kind];
  const own = problems.filter((problem) => problem.path === path || problem.path.startsWith(`${path}/`));
  const notes = [schema.description, rangeOf(schema)].filter((note) => note !== undefined).join('. ');
  const described = [own.length > 0 && `${id}-problem`, notes !== '' && `${id}-note`].filter(Boolean).join(' ');
  const label = (
    <>
      {labelOf(props)}
      {!required && <span class="optional"> (optional)</span>}
    </>
  );
  return (
    <div class="field stack">
      {composite.includes(kind) ? (
        <span class="label" id={`${id}-label`}>
          {label}
        </span>
      ) : (
        <label for={id}>{label}</label>
      )}
      <Control
        {...props}
        id={id}
        aria={{ 'aria-describedby': described || undefined, 'aria-invalid': own.length > 0 || undefined }}
      />
      {notes !== '' && (
        <p class="note" id={`${id}-note`}>
          {notes}
        </p>
      )}
      {own.length > 0 && (
        <p class="problem" id={`${id}-problem`} role="alert">
          {own.map(({ text }) => text).join('; ')}
        </p>
      )}
    </div>
  );
}

/** The bounds of a number, for people. */
function rangeOf({ minimum, maximum }: ReplySchema): string | undefined {
  if (minimum === undefined) return maximum === undefined ? undefined : `At most ${maximum}`;
  return maximum === undefined ? `At least ${minimum}` : `${minimum} to ${maximum}`;
}

interface ControlProps {
  readonly schema: ReplySchema;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly required: boolean;
  readonly id: string;
  readonly aria: FieldAria;
}

/** Two buttons, of which none is pressed at first: a person decides. */
function YesNo({ value, onChange, required, id, aria }: ControlProps): JSX.Element {
  const options = [['Yes', true], ['No', false], ...(required ? [] : [['No answer', undefined] as const])] as const;
  return (
    <div {...aria} class="segments checks row" role="radiogroup" aria-labelledby={`${id}-label`}>
      {options.map(([label, option]) => (
        <label key={label}>
          <input type="radio" name={id} checked={value === option} onChange={() => onChange(option)} />
          {label}
        </label>
      ))}
    </div>
  );
}

/** What is no number is sent as null, which the server refuses with its type. */
const NumberInput = ({ schema, value, onChange, id, aria }: ControlProps): JSX.Element => (
  <input
    {...aria}
    id={id}
    type="number"
    inputMode={schema.type === 'integer' ? 'numeric' : 'decimal'}
    step={schema.type === 'integer' ? 1 : 'any'}
    min={schema.minimum}
    max={schema.maximum}
    // Not the current value: while "1.05" is typed, "1.0" would become "1".
    defaultValue={typeof value === 'number' ? value : undefined}
    onInput={({ currentTarget: { value: text, valueAsNumber, validity } }) =>
      onChange(text === '' && !validity.badInput ? undefined : valueAsNumber)
    }
  />
);

function Choice({ schema, value, onChange, required, id, aria }: ControlProps): JSX.Element {
  const choices = choicesOf(schema) ?? [];
  return (
    <select {...aria} id={id} onChange={(e) => onChange(choices[Number(e.currentTarget.value)]?.value)}>
      <option value={-1} selected={value === undefined} disabled={required}>
        {required ? 'Choose…' : 'No answer'}
      </option>
      {choices.map((choice, index) => (
        <option key={`${index}`} value={index} selected={choice.value === value}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}

/** Several values of an enum, in its order. */
function Choices({ schema, value, onChange, required, id, aria }: ControlProps): JSX.Element {
  const choices = choicesOf(schema.items ?? {}) ?? [];
  const chosen: readonly unknown[] = Array.isArray(value) ? value : [];
  const toggle = (choice: unknown): void => {
    const next = choices.map((other) => other.value).filter((other) => (other === choice) !== chosen.includes(other));
    onChange(next.length === 0 && !required ? undefined : next);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be described by the field's problem in all browsers.
    <div class="checks row" role="group" aria-labelledby={`${id}-label`} aria-describedby={aria['aria-describedby']}>
      {choices.map(({ value: choice, label }, index) => (
        <label key={`${index}`}>
          <input
            type="checkbox"
            aria-invalid={aria['aria-invalid']}
            checked={chosen.includes(choice)}
            onChange={() => toggle(choice)}
          />
          {label}
        </label>
      ))}
    </div>
  );
}

/** The input types of formats. Other texts are typed in a box that grows. */
const inputTypes: Readonly<Record<string, 'email' | 'url' | 'date' | 'time' | 'datetime-local'>> = {
  email: 'email',
  uri: 'url',
  url: 'url',
  date: 'date',
  time: 'time',
  'iso-time': 'time',
  'date-time': 'datetime-local',
  'iso-date-time': 'datetime-local',
};

function TextInput({ schema, value, onChange, required, id, aria }: ControlProps): JSX.Element {
  const type = inputTypes[schema.format ?? ''];
  const text = typeof value === 'string' ? value : '';
  if (type === undefined) {
    const change = (next: string): void => onChange(next === '' && !required ? undefined : next);
    return <MessageBox id={id} aria={aria} value={text} onInput={change} />;
  }
  return (
    <input
      {...aria}
      id={id}
      // The types of JSX are a union of one type of props for each of these.
      type={type as 'date'}
      value={toInput(text, type)}
      onInput={({ currentTarget: { value: typed } }) => onChange(typed === '' ? undefined : readValue(typed, schema))}
    />
  );
}

/** The text of an input for a time of JSON Schema, which has a zone: local time. */
function toInput(text: string, type: string): string {
  if (type === 'time') return text.slice(0, 5);
  if (type !== 'datetime-local' || text === '') return text;
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** An array of strings, one per line. */
function LineList({ value, onChange, id, aria }: ControlProps): JSX.Element {
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
function JsonEditor({ schema, value, onChange, id, aria }: ControlProps): JSX.Element {
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

/** The control for each kind of value. An object without fields is edited as JSON. */
const controls: Readonly<Record<FieldKind, (props: ControlProps) => JSX.Element>> = {
  boolean: YesNo,
  number: NumberInput,
  choice: Choice,
  choices: Choices,
  list: LineList,
  text: TextInput,
  object: JsonEditor,
  json: JsonEditor,
};
