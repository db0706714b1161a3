import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import { isObject } from '../core/json.ts';
import { json } from '../core/parts.ts';
import type { MessagePart } from '../schema/message.ts';

/** What a tool returned, as the journal of a durable run has it. */
export interface ToolResult {
  readonly parts: MessagePart[];
  /** Its structured content, or its text. */
  readonly output: Record<string, unknown>;
  /** The text of a result that is an error. */
  readonly error?: string;
}

export function resultOf({ content = [], structuredContent, isError }: CallToolResult): ToolResult {
  const texts = content.flatMap((block) => (block.type === 'text' ? block.text : []));
  const structured = isObject(structuredContent) ? structuredContent : undefined;
  const text = texts.join('\n');
  // Servers repeat structured content as text, for clients that do not know it.
  const blocks = structured === undefined ? content : content.filter((block) => !isCopy(block, structured));
  return {
    parts: [...blocks.flatMap(partOf).map(onItsLine), ...(structured === undefined ? [] : [json(structured)])],
    output: structured ?? { text },
    ...(isError === true && { error: text || 'The tool failed and did not say why.' }),
  };
}

const isText = (part: MessagePart | undefined): boolean =>
  part?.content_type === 'text/plain' && part.name === undefined;

/** A block of text after another one: as parts of a message they would be one word. */
const onItsLine = (part: MessagePart, index: number, parts: readonly MessagePart[]): MessagePart =>
  isText(part) && isText(parts[index - 1]) ? { ...part, content: `\n${part.content}` } : part;

function isCopy(block: ContentBlock, structured: object): boolean {
  if (block.type !== 'text') return false;
  try {
    return JSON.stringify(JSON.parse(block.text)) === JSON.stringify(structured);
  } catch {
    return false;
  }
}

function partOf(block: ContentBlock): MessagePart[] {
  switch (block.type) {
    case 'text':
      return [{ content_type: 'text/plain', content: block.text }];
    case 'image':
    case 'audio':
      return [{ content_type: block.mimeType, content: block.data, content_encoding: 'base64' }];
    case 'resource_link': {
      const { name, uri, mimeType = 'application/octet-stream' } = block;
      return [{ name, content_type: mimeType, content_url: uri }];
    }
    case 'resource': {
      const { resource } = block;
      const { uri, mimeType } = resource;
      if ('text' in resource) return [{ name: uri, content_type: mimeType ?? 'text/plain', content: resource.text }];
      const content_type = mimeType ?? 'application/octet-stream';
      return [{ name: uri, content_type, content: resource.blob, content_encoding: 'base64' }];
    }
    default:
      return [];
  }
}
