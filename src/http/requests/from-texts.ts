import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { isObject } from '../../core/json.ts';

/** Converts the values of a URL or of headers, which are texts, to the types that a schema expects, and adds its defaults. */
export function fromTexts(schema: TSchema, texts: object): unknown {
  const converted = Value.Convert(schema, Value.Default(schema, { ...texts }));
  if (!isObject(converted)) return converted;
  for (const [name, text] of Object.entries(texts)) {
    const value = converted[name];
    // TypeBox takes the digits before the point or the exponent: 1e3 would be 1.
    if (typeof value === 'number' && value !== Number(text)) converted[name] = text;
  }
  return converted;
}
