import type { Reply } from '../client/input.ts';
import { type Field, fieldKind, fieldsOf, parseValue, type ReplySchema } from '../client/reply-form.ts';
import type { AwaitRequest } from '../schema/run.ts';
import type { ReadLine } from './terminal.ts';

/** The text typed for each field. After a refusal it is the default, so that only the wrong field is typed again. */
export type TypedValues = Map<string, string>;

/**
 * Prompts for the reply to an await request: text, or the value of its schema; an object is prompted field by field.
 * The server validates the value. Undefined if the terminal is closed or the prompt is aborted.
 */
export async function promptReply(
  { schema }: AwaitRequest,
  readLine: ReadLine,
  typed: TypedValues,
): Promise<Reply | undefined> {
  if (schema === undefined) return readLine('> ');
  const value =
    fieldKind(schema) === 'object'
      ? await promptObject(fieldsOf(schema), readLine, typed)
      : await promptValue({ name: '', schema, required: true }, readLine, typed);
  return value === undefined ? undefined : { content_type: 'application/json', content: JSON.stringify(value) };
}

async function promptObject(fields: readonly Field[], readLine: ReadLine, typed: TypedValues) {
  const object: Record<string, unknown> = {};
  for (const field of fields) {
    const value = await promptValue(field, readLine, typed);
    if (value === undefined) return undefined;
    if (value !== omitted) object[field.name] = value;
  }
  return object;
}

const omitted = Symbol('omitted');

async function promptValue(field: Field, readLine: ReadLine, typed: TypedValues): Promise<unknown> {
  const { name, schema, required } = field;
  const preset = typed.get(name) ?? (schema.default === undefined ? '' : toText(schema.default));
  const line = await readLine(`${[...label(field), preset && `[${preset}]`].filter(Boolean).join(' ')} > `);
  if (line === undefined) return undefined;
  const text = line.trim() === '' ? preset : line.trim();
  if (text === '' && !required) return omitted;
  typed.set(name, text);
  return parseValue(text, schema);
}

function label({ name, schema, required }: Field): string[] {
  const format = [formatOf(schema), required ? '' : 'optional'].filter(Boolean).join(', ');
  const words = [schema.title, schema.description].filter((text) => typeof text === 'string').join('. ');
  return [name, format && `(${format})`, words];
}

/** How to type a value; free text needs no explanation. */
function formatOf({ type, enum: choices }: ReplySchema): string | undefined {
  return Array.isArray(choices) ? choices.map(toText).join(' | ') : type && formats[type];
}

const formats: Readonly<Record<string, string>> = {
  boolean: 'yes | no',
  integer: 'whole number',
  number: 'number',
  object: 'JSON',
  array: 'JSON',
};

const toText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
