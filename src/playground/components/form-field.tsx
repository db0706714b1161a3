import type { JSX } from 'preact';
import { useId } from 'preact/hooks';
import {
  fieldKind,
  fieldsOf,
  initialValue,
  isObject,
  type Problem,
  pointerTo,
  type ReplySchema,
} from '../../client/reply-form.ts';
import { FormControl } from './form-control.tsx';

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
      <div class="row">
        <button type="button" class="quiet add" onClick={() => onChange(initialValue(schema))}>
          + {label} <span class="optional">(optional)</span>
        </button>
      </div>
    );
  }
  return (
    <fieldset>
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
    <div class="fields">
      {schema.description !== undefined && <p class="note">{schema.description}</p>}
      {own.map(({ path: at, text }) => (
        <p key={at} class="problem" role="alert">
          {at === path ? text : `${at}: ${text}`}
        </p>
      ))}
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
    <div class="field" data-kind={kind}>
      {composite.includes(kind) ? (
        <span class="label" id={`${id}-label`}>
          {label}
        </span>
      ) : (
        <label for={id}>{label}</label>
      )}
      <FormControl
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
