import { artifact, json } from '../core/parts.ts';
import type { MessageInput, MessagePart } from '../schema/message.ts';

/** A string is a part of plain text. */
export type PartInput = string | MessagePart;

/** The input of a run. Consecutive strings and parts form one message of the user. */
export type Input = PartInput | MessageInput | readonly (PartInput | MessageInput)[];

/** The reply to an awaiting run: one message. A boolean answers a question whether something may be done. */
export type Reply = boolean | PartInput | MessageInput | readonly PartInput[];

const isMessage = (value: boolean | PartInput | MessageInput): value is MessageInput =>
  typeof value === 'object' && 'parts' in value && Array.isArray(value.parts);
const isList = <T>(value: T | readonly T[]): value is readonly T[] => Array.isArray(value);

const toPart = (value: PartInput): MessagePart =>
  typeof value === 'string' ? { content_type: 'text/plain', content: value } : value;

export function toMessages(input: Input): MessageInput[] {
  const messages: MessageInput[] = [];
  let openParts: MessagePart[] | undefined;
  for (const value of isList(input) ? input : [input]) {
    if (isMessage(value)) {
      messages.push(value);
      openParts = undefined;
    } else if (openParts === undefined) {
      openParts = [toPart(value)];
      messages.push({ role: 'user', parts: openParts });
    } else openParts.push(toPart(value));
  }
  return messages;
}

export function toReply(reply: Reply): MessageInput {
  if (typeof reply === 'boolean') return { role: 'user', parts: [json(reply)] };
  if (!isList(reply) && isMessage(reply)) return reply;
  return { role: 'user', parts: (isList(reply) ? reply : [reply]).map(toPart) };
}

/**
 * A file that a user has chosen or dropped, as a part of the input. UTF-8 is sent as text, other bytes in base64. Its type
 * is the one that the browser has found. The server refuses an input larger than its limits.
 */
export const fileOf = async (file: File): Promise<MessagePart> =>
  artifact(file.name, new Uint8Array(await file.arrayBuffer()), file.type || undefined);
