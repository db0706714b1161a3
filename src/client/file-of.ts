import { artifact } from '../core/parts.ts';
import type { MessagePart } from '../schema/message.ts';

/**
 * A file that a user has chosen or dropped, as a part of the input. UTF-8 is sent as text, other bytes in base64. Its type
 * is the one that the browser has found. The server refuses an input larger than its limits.
 */
export const fileOf = async (file: File): Promise<MessagePart> =>
  artifact(file.name, new Uint8Array(await file.arrayBuffer()), file.type || undefined);
