import { type Static, Type } from '@sinclair/typebox';
import { isObject } from '../../core/json.ts';
import { questionText } from '../../core/parts.ts';
import { open } from '../../core/validate.ts';
import type { MessageInput } from '../../schema/message.ts';
import type { AwaitRequest } from '../../schema/run.ts';
import { isYesOrNo, jsonIn } from '../part-kinds.ts';

type Schema = Readonly<Record<string, unknown>>;

/** What a client's user has done with a form. */
export const ElicitResult = open({
  action: Type.Union([Type.Literal('accept'), Type.Literal('decline'), Type.Literal('cancel')]),
  content: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
export type ElicitResult = Static<typeof ElicitResult>;

/** The one field of a form for a reply that is no flat object. */
const wrapped = 'answer';

/** The question of a run as a form. Forms of this protocol are flat: each field is a text, a number or a choice. */
export const elicitOf = (asked: AwaitRequest): object => ({
  method: 'elicitation/create',
  params: { mode: 'form', message: questionText(asked), requestedSchema: formOf(asked).schema },
});

/** The reply that a form makes; undefined where the user gives none. The answer no to a yes-or-no question is a reply. */
export function replyOf(asked: AwaitRequest, { action, content = {} }: ElicitResult): MessageInput | undefined {
  if (action === 'decline' && isYesOrNo(asked)) return jsonMessage(false);
  if (action !== 'accept') return undefined;
  const { kind } = formOf(asked);
  if (kind === 'object') return jsonMessage(content);
  const value = content[wrapped];
  if (kind === 'value' && typeof value !== 'string') return jsonMessage(value ?? null);
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? '');
  const json = kind === 'json' ? jsonIn(text) : undefined;
  return json === undefined ? { parts: [{ content_type: 'text/plain', content: text }] } : jsonMessage(json.value);
}

const jsonMessage = (value: unknown): MessageInput => ({
  parts: [{ content_type: 'application/json', content: JSON.stringify(value) }],
});

interface Form {
  /** What the form's content becomes: the object itself, its one value, its one text, or the JSON that this text is. */
  readonly kind: 'object' | 'value' | 'text' | 'json';
  readonly schema: object;
}

function formOf({ schema }: AwaitRequest): Form {
  if (schema === undefined) return { kind: 'text', schema: oneField({ type: 'string', title: 'Answer' }) };
  const own = fieldOf(schema);
  if (own !== undefined) return { kind: 'value', schema: oneField({ title: 'Answer', ...own }) };
  const fields = fieldsOf(schema);
  if (fields !== undefined) return { kind: 'object', schema: fields };
  const description = `JSON that fits ${JSON.stringify(schema)}`.slice(0, maxDescription);
  return { kind: 'json', schema: oneField({ type: 'string', title: 'Answer', description }) };
}

const maxDescription = 4_000;

const oneField = (field: object): object => ({
  type: 'object',
  properties: { [wrapped]: field },
  required: [wrapped],
});

/** The schema of a flat object; undefined for any other one. */
function fieldsOf({ type, properties, required }: Schema): object | undefined {
  if (type !== 'object' || !isObject(properties)) return undefined;
  const fields = Object.entries(properties).map(
    ([name, schema]) => [name, isObject(schema) && fieldOf(schema)] as const,
  );
  if (fields.length === 0 || fields.some(([, field]) => !field)) return undefined;
  return { type, properties: Object.fromEntries(fields), ...(Array.isArray(required) && { required }) };
}

/** The keywords of each type of field; clients may refuse a form with others. */
const keywords: Readonly<Record<string, readonly string[]>> = {
  string: ['minLength', 'maxLength', 'format', 'enum', 'enumNames', 'oneOf'],
  number: ['minimum', 'maximum'],
  integer: ['minimum', 'maximum'],
  boolean: [],
  array: ['minItems', 'maxItems', 'items'],
};
const formats = ['email', 'uri', 'date', 'date-time'];

/** A schema as a field of a form; undefined for one that no field can have. */
function fieldOf(schema: Schema): Schema | undefined {
  const { type } = schema;
  const own = typeof type === 'string' && Object.hasOwn(keywords, type) ? keywords[type] : undefined;
  if (own === undefined || (type === 'array' && !isChoice(schema.items))) return undefined;
  const known = new Set(['type', 'title', 'description', 'default', ...own]);
  const field = Object.fromEntries(Object.entries(schema).filter(([name]) => known.has(name)));
  if (formats.includes(String(field.format))) return field;
  const { format: _, ...rest } = field;
  return rest;
}

/** The items of a list in which a user marks some. */
const isChoice = (items: unknown): boolean =>
  isObject(items) && (Array.isArray(items.anyOf) || (items.type === 'string' && Array.isArray(items.enum)));
