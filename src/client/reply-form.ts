/**
 * A form for the JSON Schema of an await request. The playground draws it and the command line asks it field by field.
 * The server validates the reply; the form only needs to produce values of about the right type.
 */

/** A JSON Schema, as far as forms use it. Schemas come from agents, so a keyword may have any value. */
export interface ReplySchema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, ReplySchema>>;
  readonly required?: readonly string[];
  readonly items?: ReplySchema;
  readonly minimum?: number;
  readonly maximum?: number;
}

export type FieldKind = 'choice' | 'boolean' | 'number' | 'text' | 'list' | 'object' | 'json';

export interface Field {
  readonly name: string;
  readonly schema: ReplySchema;
  readonly required: boolean;
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The kind of input for a value. A schema that has no input of its own is edited as JSON. */
export function fieldKind({ type, enum: choices, items, properties }: ReplySchema): FieldKind {
  if (Array.isArray(choices)) return 'choice';
  if (isObject(properties) && (type === undefined || type === 'object')) return 'object';
  switch (type) {
    case 'boolean':
      return 'boolean';
    case 'number':
    case 'integer':
      return 'number';
    case 'string':
      return 'text';
    case 'array':
      return items?.type === 'string' && items.enum === undefined ? 'list' : 'json';
    default:
      return 'json';
  }
}

/** The fields of an object schema, in its order. */
export const fieldsOf = ({ properties = {}, required }: ReplySchema): Field[] =>
  Object.entries(properties).map(([name, schema]) => ({
    name,
    schema: isObject(schema) ? schema : {},
    required: Array.isArray(required) && required.includes(name),
  }));

/** The value that a form starts with. */
export function initialValue(schema: ReplySchema): unknown {
  if (schema.default !== undefined) return schema.default;
  const kind = fieldKind(schema);
  if (kind === 'boolean') return false;
  if (kind !== 'object') return undefined;
  return Object.fromEntries(fieldsOf(schema).map((field) => [field.name, initialValue(field.schema)]));
}

/** The value of typed text. Text that is neither wanted as a string nor valid JSON is sent as it is: the server refuses it. */
export function parseValue(text: string, { type, enum: choices }: ReplySchema): unknown {
  if (type === 'string' || (Array.isArray(choices) && choices.includes(text))) return text;
  if (type === 'boolean' && /^(y|yes|n|no)$/i.test(text)) return /^y/i.test(text);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export interface Problem {
  /** JSON Pointer into the reply, such as `/amount`; empty for the whole reply. */
  readonly path: string;
  readonly text: string;
}

/** Splits the server's message about a refused reply into the field that it names and the problem. */
export function problemOf(message: string): Problem {
  const found = /^await_resume\.message\.parts(?:\[\d+\]\.content)?(\/[^:]*)?: (.*)$/s.exec(message);
  if (found === null) return { path: '', text: message };
  const [, path = '', text = message] = found;
  const missing = /^must have required property '([^']+)'/.exec(text)?.[1];
  return missing === undefined ? { path, text } : { path: `${path}/${missing}`, text: 'is required.' };
}
