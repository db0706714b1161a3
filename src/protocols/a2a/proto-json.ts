import { KindGuard, type TObject, type TSchema } from '@sinclair/typebox';
import type { FastifyReply } from 'fastify';
import { isObject } from '../../core/json.ts';
import { unknownField, warning } from '../../http/requests/unknown-fields.ts';

/**
 * The parameters of an operation under the names of its schema. As in the JSON of Protocol Buffers, a client
 * may send the field names of the proto, such as `page_size`, and a number as a text. Unknown fields stay. A header names them.
 */
export function ownNames(schema: TObject, params: unknown, reply: FastifyReply): unknown {
  const unknown: string[] = [];
  const named = fieldsOf(schema, params, 'params', unknown);
  if (unknown.length > 0) reply.header('Rivulet-Warning', warning(unknown));
  return named;
}

/** A value with the names of its schema. What no schema describes, such as metadata, stays as it is. */
function fieldsOf(schema: TSchema, value: unknown, path: string, unknown: string[]): unknown {
  if (KindGuard.IsInteger(schema))
    return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
  if (KindGuard.IsArray(schema) && Array.isArray(value)) {
    return value.map((item, index) => fieldsOf(schema.items, item, `${path}[${index}]`, unknown));
  }
  if (!KindGuard.IsObject(schema) || !isObject(value)) return value;
  const { properties } = schema;
  const entries = Object.entries(value).map(([name, field]): [name: string, value: unknown] => {
    const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    // Where a client sends both names of a field, the proto's name counts as unknown.
    const own = Object.hasOwn(properties, name) || Object.hasOwn(value, camel) ? name : camel;
    const known = Object.hasOwn(properties, own) ? properties[own] : undefined;
    if (known === undefined) unknown.push(unknownField(name, path));
    return known === undefined ? [name, field] : [own, fieldsOf(known, field, `${path}.${own}`, unknown)];
  });
  return Object.fromEntries(entries);
}
