import type { Static, TSchema } from '@sinclair/typebox';
import type { Message } from '../schema/message.ts';
import type { AwaitResume } from '../schema/run.ts';
import { parsed } from './json.ts';
import { isJsonType } from './media-types.ts';

/** The type of a value that a TypeBox schema describes; `unknown` for any other JSON Schema. */
export type ValueOf<Schema> = Schema extends TSchema ? Static<Schema> : unknown;

/** A reply, as the agent gets it. */
export interface AgentReply<Value = unknown> extends AwaitResume {
  /**
   * What the schema of the question was checked against: the value of the reply's JSON part, or else of its text, which is
   * parsed where it is JSON. It is not enumerable: the reply in the log has no such field.
   */
  readonly value: Value;
}

/** The text of a reply that has its value: of its JSON part, whose number is `index`, or else all of its text. */
export function valueTextOf({ parts }: Pick<Message, 'parts'>): { readonly text: string; readonly index?: number } {
  const index = parts.findIndex((part) => isJsonType(part));
  if (index < 0) return { text: parts.map(({ content }) => content ?? '').join('') };
  return { text: parts[index]?.content ?? '', index };
}

/** The value of a reply. The schema that the reply was checked against describes its type. */
export const replyValue = ({ message }: Pick<AwaitResume, 'message'>): unknown => parsed(valueTextOf(message).text);

/** The reply with its value. The value is read when it is asked for, because most agents read the text alone. */
export const withValue = <Value>(reply: AwaitResume): AgentReply<Value> =>
  Object.defineProperty({ ...reply }, 'value', { get: () => replyValue(reply) }) as AgentReply<Value>;
