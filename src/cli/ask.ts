import type { Reply } from '../client/input.ts';
import type { AwaitRequest } from '../schema/run.ts';
import type { ReadLine } from './terminal.ts';

interface Schema {
  readonly type?: unknown;
  readonly enum?: unknown;
  readonly title?: unknown;
  readonly description?: unknown;
  readonly default?: unknown;
  readonly properties?: unknown;
  readonly required?: unknown;
}

/** What was typed for each field, so that after a refusal only what is wrong has to be typed again. */
export type Typed = Map<string, string>;

/**
 * Asks for what the request wants: a text, or where it has a schema, a value; an object field by field.
 * Whether the value fits is for the server to say. Undefined where there is no answer.
 */
export async function askFor({ schema }: AwaitRequest, read: ReadLine, typed: Typed): Promise<Reply | undefined> {
  if (schema === undefined) return read('> ');
  const fields = fieldsOf(schema);
  const value = fields ? await askFields(fields, schema, read, typed) : await askValue('', schema, true, read, typed);
  return value === undefined ? undefined : { content_type: 'application/json', content: JSON.stringify(value) };
}

async function askFields(fields: [string, Schema][], { required }: Schema, read: ReadLine, typed: Typed) {
  const object: Record<string, unknown> = {};
  for (const [name, schema] of fields) {
    const needed = Array.isArray(required) && required.includes(name);
    const value = await askValue(name, schema, needed, read, typed);
    if (value === undefined) return undefined;
    if (value !== leftOut) object[name] = value;
  }
  return object;
}

const leftOut = Symbol('left out');

async function askValue(name: string, schema: Schema, needed: boolean, read: ReadLine, typed: Typed): Promise<unknown> {
  const before = typed.get(name) ?? (schema.default === undefined ? '' : shown(schema.default));
  const line = await read(`${[...label(name, schema, needed), before && `[${before}]`].filter(Boolean).join(' ')} > `);
  if (line === undefined) return undefined;
  const text = line.trim() === '' ? before : line.trim();
  if (text === '' && !needed) return leftOut;
  typed.set(name, text);
  return toValue(text, schema);
}

function label(name: string, { type, enum: choices, title, description }: Schema, needed: boolean): string[] {
  const hint = [Array.isArray(choices) ? choices.map(shown).join(' | ') : kinds.get(type), needed ? '' : 'optional'];
  const hints = hint.filter(Boolean).join(', ');
  const words = [title, description].filter((one) => typeof one === 'string').join('. ');
  return [name, hints && `(${hints})`, words];
}

/** How to type a value of a type; a text needs no saying. */
const kinds = new Map<unknown, string>([
  ['boolean', 'yes | no'],
  ['integer', 'whole number'],
  ['number', 'number'],
  ['object', 'JSON'],
  ['array', 'JSON'],
]);

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** A text stays a text where the schema wants one; all else is read as JSON where it is that. */
function toValue(text: string, { type, enum: choices }: Schema): unknown {
  if (type === 'string' || (Array.isArray(choices) && choices.includes(text))) return text;
  if (type === 'boolean' && /^(y|yes|n|no)$/i.test(text)) return /^y/i.test(text);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function fieldsOf({ properties }: Schema): [string, Schema][] | undefined {
  return isObject(properties)
    ? Object.entries(properties).map(([name, schema]) => [name, isObject(schema) ? schema : {}])
    : undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
