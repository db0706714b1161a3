import { KindGuard, type TSchema } from '@sinclair/typebox';
import type { FastifyInstance } from 'fastify';

/** At most so many names in the header, each of at most so many characters. */
const maxNames = 5;
const maxLength = 64;

/** The fields of an object that has no others. Objects that agents receive whole, such as messages, may have any. */
interface ClosedObject {
  readonly name: string;
  readonly fields: ReadonlySet<string>;
  readonly inner: readonly { readonly field: string; readonly closed: ClosedObject }[];
}

/**
 * Names the fields of bodies and queries that no schema has in the header `Rivulet-Warning`, such as `unknown field
 * "modle" in body`. They are ignored otherwise, because clients may be newer than the server.
 */
export function reportUnknownFields(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const body = closedObject(route.schema?.body, 'body');
    const query = closedObject(route.schema?.querystring, 'query');
    if (body === undefined && query === undefined) return;
    route.preHandler = [
      (request, reply, done) => {
        const found: string[] = [];
        if (body !== undefined) findUnknown(request.body, body, found);
        if (query !== undefined) findUnknown(request.query, query, found);
        if (found.length > 0) reply.header('Rivulet-Warning', warning(found));
        done();
      },
      ...[route.preHandler ?? []].flat(),
    ];
  });
}

function closedObject(schema: unknown, name: string): ClosedObject | undefined {
  if (!KindGuard.IsObject(schema) || schema.additionalProperties === true) return undefined;
  const inner = Object.entries<TSchema>(schema.properties).flatMap(([field, property]) => {
    const closed = closedObject(property, `${name}.${field}`);
    return closed === undefined ? [] : [{ field, closed }];
  });
  return { name, fields: new Set(Object.keys(schema.properties)), inner };
}

function findUnknown(value: unknown, { name, fields, inner }: ClosedObject, found: string[]): void {
  if (typeof value !== 'object' || value === null) return;
  for (const key in value) {
    if (fields.has(key)) continue;
    found.push(unknownField(key, name));
    if (found.length > maxNames) return;
  }
  for (const { field, closed } of inner) findUnknown(Reflect.get(value, field), closed, found);
}

/** A field as the header names it: as JSON has it, cut, in the characters that a header may have. */
export const unknownField = (name: string, place: string): string =>
  `${JSON.stringify(name.slice(0, maxLength)).replace(/[^ -~]/g, '?')} in ${place}`;

/** The value of the header. */
export function warning(found: readonly string[]): string {
  const rest = found.length > maxNames ? ' and more' : '';
  return `unknown field${found.length > 1 ? 's' : ''} ${found.slice(0, maxNames).join(', ')}${rest}`;
}
