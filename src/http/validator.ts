import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { FastifySchemaCompiler } from 'fastify';
import { fail } from '../core/errors.ts';
import { compile } from '../core/validate.ts';

const places: Record<string, string> = { params: 'path', querystring: 'query', headers: 'headers' };

/**
 * Fastify's validators, compiled from the same TypeBox schemas as types and documentation, once, at boot.
 * What comes in a URL is text, so it is converted first; a body is taken as it is.
 */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const isBody = httpPart === undefined || httpPart === 'body';
  const validate = compile(schema, isBody ? 'body' : (places[httpPart] ?? httpPart));
  return (value: unknown) => {
    try {
      if (isBody) {
        if (value === undefined || value === null) throw fail('body_not_json', 'it is empty');
        return { value: validate(value) };
      }
      return { value: validate(Value.Convert(schema, Value.Default(schema, { ...Object(value) }))) };
    } catch (error) {
      return { error: error instanceof Error ? error : new Error(String(error)) };
    }
  };
};
