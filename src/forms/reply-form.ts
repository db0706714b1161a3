/**
 * A form for the JSON Schema of an await request. The playground draws it and the command line asks it field by field.
 * The server validates the reply; the form only needs to produce values of about the right type.
 */
import { isObject, parsed } from '../core/json.ts';
import type { MessagePart } from '../schema/message.ts';

/** A JSON Schema, as far as forms use it. Schemas come from agents, so a keyword may have any value. */
export interface ReplySchema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly oneOf?: readonly ReplySchema[];
  readonly anyOf?: readonly ReplySchema[];
  readonly properties?: Readonly<Record<string, ReplySchema>>;
  readonly required?: readonly string[];
  readonly items?: ReplySchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly multipleOf?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly format?: string;
}

/** `choice` is one value of an enum, `choices` is an array of them, `list` an array of texts. */
export type FieldKind = 'choice' | 'choices' | 'boolean' | 'number' | 'text' | 'list' | 'object' | 'json';

export interface Field {
  readonly name: string;
  readonly schema: ReplySchema;
  readonly required: boolean;
}

/** A value to choose, and its name. */
export interface Choice {
  readonly value: unknown;
  readonly label: string;
}

export const labelOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

/** The values to choose from: those of `enum`, or a `oneOf` or `anyOf` of constants with titles. Undefined if there are none. */
export function choicesOf({ enum: values, oneOf, anyOf }: ReplySchema): Choice[] | undefined {
  if (Array.isArray(values)) return values.map((value) => ({ value, label: labelOf(value) }));
  const options: unknown = oneOf ?? anyOf;
  if (!Array.isArray(options) || options.length === 0) return undefined;
  if (!options.every((option) => isObject(option) && 'const' in option)) return undefined;
  return options.map(({ const: value, title }) => ({
    value,
    label: typeof title === 'string' ? title : labelOf(value),
  }));
}

/** The kind of input for a value. A schema that has no input of its own is edited as JSON. */
export function fieldKind(schema: ReplySchema): FieldKind {
  const { type, items, properties } = schema;
  if (choicesOf(schema) !== undefined) return 'choice';
  if (type === 'array' && isObject(items) && choicesOf(items) !== undefined) return 'choices';
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
      if (Array.isArray(items?.enum)) return 'choices';
      return items?.type === 'string' ? 'list' : 'json';
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

/**
 * The value that a form starts with: defaults, and the objects that are required. Everything else is absent, also a
 * boolean: a person decides on yes or no.
 */
export function initialValue(schema: ReplySchema, required = true): unknown {
  if (schema.default !== undefined) return schema.default;
  if (fieldKind(schema) !== 'object' || !required) return undefined;
  return Object.fromEntries(fieldsOf(schema).map((field) => [field.name, initialValue(field.schema, field.required)]));
}

/** Whether a question without a schema can be answered with yes or no; any other text is an answer as well. */
export function asksYesOrNo(question: string): boolean {
  if (/\byes\b.*\bno\b|\by\/n\b/is.test(question)) return true;
  const last =
    question
      .trim()
      .split(/(?<=[.!?])\s+|\n/)
      .at(-1) ?? '';
  return last.endsWith('?') && yesNoVerb.test(last) && !/\bor\b/i.test(last);
}

const yesNoVerb =
  /^(?:(?:so|and|ok|okay|then|now),?\s+)?(?:shall|should|may|can|could|do|does|did|is|are|was|were|will|would|has|have|am|continue|proceed|approve|confirm)\b/i;

/** A reply with a value: of a question without a schema it is a text, otherwise JSON. */
export const replyPart = (schema: ReplySchema | undefined, value: unknown): MessagePart =>
  schema === undefined
    ? { content_type: 'text/plain', content: String(value ?? '') }
    : { content_type: 'application/json', content: JSON.stringify(value) ?? 'null' };

/** The value of typed text. Text that is neither wanted as a string nor valid JSON is sent as it is: the server refuses it. */
export function parseValue(text: string, { type, enum: choices }: ReplySchema): unknown {
  if (type === 'string' || (Array.isArray(choices) && choices.includes(text))) return text;
  if (type === 'boolean' && /^(y|yes|n|no)$/i.test(text)) return /^y/i.test(text);
  return parsed(text);
}

/** The JSON Pointer to a property of an object. */
export const pointerTo = (path: string, name: string): string =>
  `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;

export interface Problem {
  /** JSON Pointer into the reply, such as `/amount`; empty for the whole reply. */
  readonly path: string;
  readonly text: string;
}

/** The problems of a reply that the server refused: those that it lists, or else its message. */
export function problemsOf({ message, data }: { readonly message: string; readonly data?: unknown }): Problem[] {
  const listed: unknown = isObject(data) ? data.problems : undefined;
  const problems = Array.isArray(listed) ? listed.filter(isProblem) : [];
  // Such as "must match "then" schema" beside the problem that it is about.
  const first = problems.filter(({ path }, index) => problems.findIndex((other) => other.path === path) === index);
  return first.length > 0 ? first : [{ path: '', text: message }];
}

const isProblem = (value: unknown): value is Problem =>
  isObject(value) && typeof value.path === 'string' && typeof value.text === 'string';
