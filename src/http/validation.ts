import { KindGuard, type TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { FastifySchemaCompiler } from 'fastify';
import { fail } from '../core/errors.ts';
import { compile } from '../core/validate.ts';

const places: Record<string, string> = { params: 'path', querystring: 'query', headers: 'headers' };

/**
 * Compiles Fastify's validators at start, from the same TypeBox schemas as the types and the documentation. Values of
 * URLs and headers are strings, so they are converted first where the schema expects another type. Bodies are not
 * converted.
 */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const isBody = httpPart === undefined || httpPart === 'body';
  const validate = compile(schema, isBody ? 'body' : (places[httpPart] ?? httpPart));
  const isText = !isBody && Object.values<TSchema>(schema.properties).every(isPlainText);
  return (value: unknown) => {
    try {
      if (isBody) {
        if (value === undefined || value === null) throw fail('body_not_json', 'it is empty');
        return { value: validate(value) };
      }
      if (isText) return { value: validate(value) };
      return { value: validate(Value.Convert(schema, Value.Default(schema, { ...Object(value) }))) };
    } catch (error) {
      return { error: error instanceof Error ? error : new Error(String(error)) };
    }
  };
};

/** Whether a value of a URL or a header needs neither conversion nor a default. */
function isPlainText(property: TSchema): boolean {
  if (KindGuard.IsUnion(property)) return property.anyOf.every(isPlainText);
  const isText = KindGuard.IsString(property) || (KindGuard.IsLiteral(property) && typeof property.const === 'string');
  return isText && property.default === undefined;
}
