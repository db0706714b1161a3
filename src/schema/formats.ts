import { FormatRegistry } from '@sinclair/typebox';

/**
 * Texts whose shape has a name of its own. The names are Rivulet's own, because TypeBox has one table of formats for all
 * code of a process; `/openapi.json` has the names of JSON Schema.
 */
export const formats = {
  'rivulet:date-time': 'date-time',
  'rivulet:email': 'email',
  'rivulet:uri': 'uri',
  'rivulet:uuid': 'uuid',
} as const;

FormatRegistry.Set('rivulet:date-time', (text) => utcOf(text) !== undefined);
FormatRegistry.Set('rivulet:uri', isUri);
FormatRegistry.Set('rivulet:email', (text) => email.test(text));
FormatRegistry.Set('rivulet:uuid', (text) => uuid.test(text));

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const email = /^[\w'+-]+(\.[\w'+-]+)*@([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/i;

const time =
  /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

/**
 * An ISO 8601 time in UTC with a `Z`, in the precision in which it was given; undefined where it is none. There are no
 * leap seconds in it, and no years but 1 to 9999: neither Date nor the protocol's clients can read them.
 */
export function utcOf(text: string): string | undefined {
  const [, year, month, day, , fraction = '', zone] = time.exec(text) ?? [];
  if (zone === undefined) return undefined;
  // Every month has these days: nearly all times need no Date, which costs ten times as much.
  if (zone === 'Z' && Number(day) <= 28 && year !== '0000') return text;
  const seconds = text.slice(0, 19);
  // A Date goes on counting: what was the 30th of February would come back as the 2nd of March.
  const local = new Date(`${seconds}Z`);
  if (local.getUTCDate() !== Number(day) || local.getUTCMonth() + 1 !== Number(month)) return undefined;
  const utc = new Date(`${seconds}${zone}`).toISOString();
  if (!/^\d{4}-/.test(utc) || utc.startsWith('0000')) return undefined;
  return zone === 'Z' ? text : `${utc.slice(0, 19)}${fraction}Z`;
}

/** Whether a text is an absolute URI, as `new URL` takes it; never one with blanks or controls, which it would drop. */
function isUri(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:[^\s\p{Cc}]+$/iu.test(text) && URL.canParse(text);
}
