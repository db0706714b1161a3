import type { MessageInput, MessagePart } from '../schema/message.ts';

/** A text is a part of plain text. */
export type PartInput = string | MessagePart;

/** What an agent is given. Texts and parts that stand next to each other are one message of the user's. */
export type Input = PartInput | MessageInput | readonly (PartInput | MessageInput)[];

/** What an awaiting run is answered: one message. */
export type Reply = PartInput | MessageInput | readonly PartInput[];

const isMessage = (value: PartInput | MessageInput): value is MessageInput =>
  typeof value === 'object' && 'parts' in value && Array.isArray(value.parts);
const isList = <T>(value: T | readonly T[]): value is readonly T[] => Array.isArray(value);

const toPart = (value: PartInput): MessagePart =>
  typeof value === 'string' ? { content_type: 'text/plain', content: value } : value;

export function toMessages(input: Input): MessageInput[] {
  const messages: MessageInput[] = [];
  let loose: MessagePart[] | undefined;
  for (const value of isList(input) ? input : [input]) {
    if (isMessage(value)) {
      messages.push(value);
      loose = undefined;
      continue;
    }
    if (loose === undefined) {
      loose = [];
      messages.push({ role: 'user', parts: loose });
    }
    loose.push(toPart(value));
  }
  return messages;
}

export function toReply(reply: Reply): MessageInput {
  if (!isList(reply) && isMessage(reply)) return reply;
  return { role: 'user', parts: (isList(reply) ? reply : [reply]).map(toPart) };
}
