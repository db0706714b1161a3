import type { Reply } from '../client/input.ts';
import { findProblems, formatOf, readValue } from '../client/reply-check.ts';
import { fieldKind, fieldsOf, parseValue, type ReplySchema, replyPart } from '../client/reply-form.ts';
import type { AwaitRequest } from '../schema/run.ts';
import { UsageError } from './exit-codes.ts';
import { oneLine, sanitizedJson } from './sanitize.ts';

/** What a question expects, in lines: each field with how it is written, and the schema. Empty for free text. */
export function expectedReply({ schema }: AwaitRequest): string[] {
  if (schema === undefined) return [];
  const fields = fieldKind(schema) === 'object' ? fieldLines(schema) : [`  ${formatOf(schema) ?? 'text'}`];
  return [...fields, `JSON Schema: ${sanitizedJson(schema)}`];
}

function fieldLines(schema: ReplySchema, indent = '  '): string[] {
  return fieldsOf(schema).flatMap(({ name, schema: inner, required }) => {
    const words = [formatOf(inner), required ? 'required' : 'optional', inner.title, inner.description];
    const isObject = fieldKind(inner) === 'object';
    const line = oneLine(`${name}: ${words.filter((word) => typeof word === 'string').join(', ')}`);
    return [`${indent}${line}`, ...(isObject ? fieldLines(inner, `${indent}  `) : [])];
  });
}

/**
 * The reply that a text of the command line means. Without a schema it is the text.
 * @throws UsageError that says what is expected
 */
export function replyOf(request: AwaitRequest, text: string): Reply {
  const { schema } = request;
  if (schema === undefined) return text;
  const value = fieldKind(schema) === 'object' ? parseValue(text, {}) : readValue(text.trim(), schema);
  const problems =
    typeof value === 'string' && fieldKind(schema) === 'object' ? [notJson] : findProblems(schema, value);
  if (problems.length === 0) return replyPart(schema, value);
  const list = problems.map(({ path, text: problem }) => `${path.slice(1) || 'the reply'} ${problem}`);
  throw new UsageError([`the question expects another reply: ${list.join(' ')}`, ...expectedReply(request)].join('\n'));
}

const notJson = { path: '', text: 'must be a JSON object.' };
