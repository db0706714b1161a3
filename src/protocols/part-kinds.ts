import { parseDataUrl } from '../core/data-url.ts';
import { isObject } from '../core/json.ts';
import { isProse } from '../core/media-types.ts';
import { textOf } from '../core/parts.ts';
import type { ClientTool } from '../core/request.ts';
import { checkJsonSize } from '../http/limits/json-size.ts';
import type { CitationMetadata, MessagePart, TrajectoryMetadata } from '../schema/message.ts';
import type { AwaitRequest } from '../schema/run.ts';

// What all protocols agree on when they write a log in their own words. `Projection` has the seam itself.

/**
 * What a part is for clients that draw it. A part of one kind only: a citation may have text of its own, which comes
 * before it.
 */
export type PartKind =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'citation'; readonly text: string; readonly citation: CitationMetadata }
  /** A call of a tool that the server has run, with its result. */
  | { readonly kind: 'tool'; readonly name: string; readonly call: TrajectoryMetadata }
  | { readonly kind: 'reasoning'; readonly text: string }
  /** Bytes, an image, a page elsewhere or an artifact. */
  | FilePart
  /** JSON and other data for programs. */
  | { readonly kind: 'data'; readonly part: MessagePart };

export interface FilePart {
  readonly kind: 'file';
  /** A `data:` URL where the part has the content. */
  readonly url: string;
  /** The content; undefined where it is elsewhere. */
  readonly base64: string | undefined;
  readonly mediaType: string;
  readonly name: string | undefined;
}

export function kindOf(part: MessagePart): PartKind {
  const { metadata, content, content_url, content_type = 'text/plain', content_encoding } = part;
  // An empty name makes no artifact.
  const name = part.name || undefined;
  if (metadata?.kind === 'trajectory') {
    const { tool_name, message = '' } = metadata;
    return tool_name === undefined
      ? { kind: 'reasoning', text: message || textOf({ ...part, metadata: undefined }) }
      : { kind: 'tool', name: tool_name, call: metadata };
  }
  if (metadata?.kind === 'citation') return { kind: 'citation', text: textOf(part), citation: metadata };
  if (content_url !== undefined) {
    const data = parseDataUrl(content_url);
    const base64 = data?.isBase64 ? data.content : undefined;
    return { kind: 'file', url: content_url, base64, mediaType: data?.mediaType || content_type, name };
  }
  if (isProse(part)) return { kind: 'text', text: textOf(part) };
  if (content_encoding !== 'base64' && name === undefined && !content_type.startsWith('image/')) {
    return { kind: 'data', part };
  }
  const base64 = content_encoding === 'base64' ? (content ?? '') : Buffer.from(content ?? '').toString('base64');
  return { kind: 'file', url: `data:${content_type};base64,${base64}`, base64, mediaType: content_type, name };
}

/** The schema of a reply that is a yes or a no. */
export const isYesOrNo = ({ schema }: AwaitRequest): boolean => schema?.type === 'boolean';

/** Values of a text that is parsed: as many as a body may have by default. */
const maxValues = 20_000;

/**
 * The JSON value that a text is; undefined where it is another text. One that is too large or nested too deep for a body
 * stays a text as well: to parse it would block the event loop, and to write it again overflow the stack.
 */
export function jsonIn(text: string): { readonly value: unknown } | undefined {
  try {
    checkJsonSize(text, maxValues);
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** The JSON object that a text is, as `jsonIn`. */
export function objectIn(text: string): Record<string, unknown> | undefined {
  const value = jsonIn(text)?.value;
  return isObject(value) ? value : undefined;
}

/** A tool that a client offers to run. A description or parameters of another type are left out. */
export const clientTool = (
  name: string,
  { description, parameters }: Readonly<Record<string, unknown>>,
): ClientTool => ({
  name,
  ...(typeof description === 'string' && { description }),
  ...(isObject(parameters) && { parameters }),
});
