/**
 * What is wrong with a reply, before it is sent. The form finds the usual mistakes in each field; the server validates the
 * whole schema and has the last word.
 */
import { isObject } from '../core/json.ts';
import {
  choicesOf,
  fieldKind,
  fieldsOf,
  labelOf,
  type Problem,
  parseValue,
  pointerTo,
  type ReplySchema,
} from './reply-form.ts';

/** Formats of texts that a form helps to type. */
type TextFormat = 'date' | 'time' | 'date-time' | 'email' | 'uri';

const isText = (value: unknown): value is string => typeof value === 'string';
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);

/** The format of a text that a form helps to type, such as a date. */
const textFormat = ({ format }: ReplySchema): TextFormat | undefined =>
  isText(format) && Object.hasOwn(textFormats, format) ? (format as TextFormat) : undefined;

/** The value of typed text, as `parseValue`; a time without a zone is in the zone of this computer. */
export function readValue(text: string, schema: ReplySchema): unknown {
  return schema.type === 'string' ? withZone(text, schema.format) : parseValue(text, schema);
}

/**
 * A time that is typed without seconds or zone, as in `14:30` or an input of a page: in the zone of this computer. The formats
 * `iso-time` and `iso-date-time` need no zone, and accept one.
 */
function withZone(text: string, format: unknown): string {
  const isTime = format === 'time' || format === 'iso-time';
  if (!isTime && format !== 'date-time' && format !== 'iso-date-time') return text;
  const [, date = '', time = ''] = /^(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d:\d\d(?::\d\d(?:\.\d+)?)?)$/.exec(text) ?? [];
  if (time === '' || isTime !== (date === '')) return text;
  const at = date === '' ? new Date() : new Date(`${date}T${time}`);
  if (Number.isNaN(at.getTime())) return text;
  const west = at.getTimezoneOffset();
  const digits = (minutes: number): string => String(Math.floor(minutes)).padStart(2, '0');
  const zone = `${west > 0 ? '-' : '+'}${digits(Math.abs(west) / 60)}:${digits(Math.abs(west) % 60)}`;
  return `${date === '' ? '' : `${date}T`}${time.length === 5 ? `${time}:00` : time}${zone}`;
}

/** All problems of a value, in the order of the fields; none where the server will probably accept it. */
export function findProblems(schema: ReplySchema, value: unknown, path = ''): Problem[] {
  if (value === undefined) return [{ path, text: 'is required.' }];
  if (fieldKind(schema) === 'object' && isObject(value)) {
    return fieldsOf(schema).flatMap(({ name, schema: inner, required }) =>
      value[name] === undefined && !required ? [] : findProblems(inner, value[name], pointerTo(path, name)),
    );
  }
  const text = problemOfValue(schema, value);
  return text === undefined ? [] : [{ path, text }];
}

function problemOfValue(schema: ReplySchema, value: unknown): string | undefined {
  const choices = choicesOf(schema);
  if (choices !== undefined) {
    const isChoice = choices.some((choice) => labelOf(choice.value) === labelOf(value));
    return isChoice ? undefined : `must be one of: ${choices.map(({ label }) => label).join(', ')}.`;
  }
  switch (schema.type) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be yes or no.';
    case 'integer':
    case 'number':
      return problemOfNumber(schema, value);
    case 'string':
      return isText(value) ? problemOfText(schema, value) : 'must be a text.';
    case 'array':
      return Array.isArray(value) ? problemOfList(schema, value) : 'must be a list.';
    case 'object':
      return isObject(value) ? undefined : 'must be an object.';
    default:
      return undefined;
  }
}

function problemOfNumber(schema: ReplySchema, value: unknown): string | undefined {
  const { type, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  if (!isNumber(value)) return `must be a ${type === 'integer' ? 'whole number' : 'number'}.`;
  if (type === 'integer' && !Number.isInteger(value)) return 'must be a whole number.';
  if (isNumber(minimum) && value < minimum) return `must be ${minimum} or more.`;
  if (isNumber(maximum) && value > maximum) return `must be ${maximum} or less.`;
  if (isNumber(exclusiveMinimum) && value <= exclusiveMinimum) return `must be more than ${exclusiveMinimum}.`;
  if (isNumber(exclusiveMaximum) && value >= exclusiveMaximum) return `must be less than ${exclusiveMaximum}.`;
  if (!isNumber(multipleOf) || multipleOf <= 0) return undefined;
  // As Ajv: 0.3 / 0.1 is not exactly 3, and only the server knows its tolerance, so fractions are left to it.
  if (Number.isInteger(multipleOf) && value % multipleOf !== 0) return `must be a multiple of ${multipleOf}.`;
  return undefined;
}

function problemOfText({ minLength, maxLength, format }: ReplySchema, value: string): string | undefined {
  // Characters, as JSON Schema counts them. A `pattern` is left to the server, which stops one that backtracks.
  const { length } = [...value];
  if (isNumber(minLength) && length < minLength)
    return length === 0 ? 'is required.' : `must have ${minLength} characters or more.`;
  if (isNumber(maxLength) && length > maxLength) return `must have ${maxLength} characters or less.`;
  const known = textFormat({ format: format ?? '' });
  return known === undefined || textFormats[known].fits(value) ? undefined : `must be ${textFormats[known].example}.`;
}

function problemOfList({ items, minItems, maxItems, uniqueItems }: ReplySchema, value: readonly unknown[]) {
  if (isNumber(minItems) && value.length < minItems) return `must have ${minItems} or more.`;
  if (isNumber(maxItems) && value.length > maxItems) return `must have ${maxItems} or less.`;
  if (uniqueItems === true && new Set(value.map(labelOf)).size < value.length) return 'must have each value once.';
  if (!isObject(items)) return undefined;
  for (const [index, item] of value.entries()) {
    const [problem] = findProblems(items, item);
    if (problem !== undefined) return `item ${index + 1} ${problem.text}`;
  }
  return undefined;
}

const day = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const clock = /^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):?[0-5]\d)$/i;

// Date would turn the 30th of February into the 2nd of March.
const isDay = (text: string): boolean => day.test(text) && new Date(`${text}T00:00:00Z`).toISOString().startsWith(text);

/** The formats as ajv-formats checks them, which the server uses. */
const textFormats: Readonly<Record<TextFormat, { fits: (text: string) => boolean; example: string }>> = {
  date: { fits: isDay, example: 'a date such as 2026-03-31' },
  time: { fits: (text) => clock.test(text), example: 'a time with its zone such as 14:30:00Z' },
  'date-time': {
    fits: (text) => isDay(text.slice(0, 10)) && /^[t\s]$/i.test(text.slice(10, 11)) && clock.test(text.slice(11)),
    example: 'a date and time with its zone such as 2026-03-31T14:30:00Z',
  },
  email: { fits: (text) => /^[^\s@]+@[^\s@.]+(\.[^\s@.]+)*$/.test(text), example: 'an email address' },
  uri: { fits: (text) => /^[a-z][a-z0-9+.-]*:\S+$/i.test(text), example: 'a URL such as https://example.com' },
};

/** How a value is written, for a person: `whole number, 1 to 60`. Undefined for free text. */
export function formatOf(schema: ReplySchema): string | undefined {
  const { type, minimum, maximum } = schema;
  switch (fieldKind(schema)) {
    case 'boolean':
      return 'yes or no';
    case 'number': {
      const word = type === 'integer' ? 'whole number' : 'number';
      if (isNumber(minimum) && isNumber(maximum)) return `${word}, ${minimum} to ${maximum}`;
      if (isNumber(minimum)) return `${word}, ${minimum} or more`;
      return isNumber(maximum) ? `${word}, ${maximum} or less` : word;
    }
    case 'choice':
      return choicesOf(schema)
        ?.map(({ label }) => label)
        .join(' | ');
    case 'choices':
      return `any of ${choicesOf(schema.items ?? {})
        ?.map(({ label }) => label)
        .join(' | ')}`;
    case 'text': {
      const format = textFormat(schema);
      return format && textFormats[format].example;
    }
    case 'list':
      return 'texts';
    case 'object':
      return undefined;
    case 'json':
      return 'JSON';
  }
}
