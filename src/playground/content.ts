import type { Message, MessagePart } from '../client/client.ts';
import type { CitationMetadata, TrajectoryMetadata } from '../schema/message.ts';

/** A message as the page shows it. */
export interface Content {
  readonly text: string;
  readonly citations: readonly CitationMetadata[];
  readonly steps: readonly TrajectoryMetadata[];
  readonly artifacts: readonly MessagePart[];
}

export function contentOf(parts: readonly MessagePart[]): Content {
  const texts: string[] = [];
  const citations: CitationMetadata[] = [];
  const steps: TrajectoryMetadata[] = [];
  const artifacts: MessagePart[] = [];
  for (const part of parts) {
    if (part.metadata?.kind === 'citation') citations.push(part.metadata);
    if (part.metadata?.kind === 'trajectory') steps.push(part.metadata);
    else if (isText(part)) texts.push(part.content ?? '');
    else if (part.content !== undefined || part.content_url !== undefined || part.name !== undefined)
      artifacts.push(part);
  }
  return { text: texts.join(''), citations, steps, artifacts };
}

function isText({ name, content_type = 'text/plain', content_encoding, content_url }: MessagePart): boolean {
  const readable = /^text\/(plain|markdown)\b/i.test(content_type);
  return readable && name === undefined && content_encoding !== 'base64' && content_url === undefined;
}

export const textOf = ({ parts }: Pick<Message, 'parts'>): string => contentOf(parts).text;
