import { parseDataUrl, partOfDataUrl } from '../../core/data-url.ts';
import { fail } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { isProse } from '../../core/media-types.ts';
import type { Message, MessagePart } from '../../schema/message.ts';
import { jsonIn } from '../part-kinds.ts';

/** A part of a UI message, as a chat posts it and as a transcript has it. Each version knows more types. */
export interface UIPart {
  readonly type: string;
  readonly [property: string]: unknown;
}

/**
 * The parts of what a user says: text, files and data. A chat adds parts of its own, such as the beginning of a step,
 * which are left out. @throws RivuletError `validation_failed` that names the part
 */
export function partsOf(parts: readonly UIPart[], path: string): MessagePart[] {
  return parts.flatMap((part, index): MessagePart[] => {
    const where = `${path}.parts[${index}]`;
    const { type, id, providerMetadata } = part;
    const own = isObject(providerMetadata) ? { providerMetadata } : {};
    if (type === 'text') return [{ content_type: 'text/plain', content: textIn(part, 'text', where), ...own }];
    if (type === 'file') return [{ ...filePart(part, where), ...own }];
    if (!type.startsWith('data-')) return [];
    const content = JSON.stringify(part.data ?? null);
    const data = { content_type: 'application/json', content, type, ...(typeof id === 'string' && { id }) };
    return [data];
  });
}

function textIn(part: UIPart, name: string, where: string): string {
  const text = part[name];
  if (typeof text !== 'string') throw fail('validation_failed', `${where}.${name}`, 'expected string');
  return text;
}

/** @throws RivuletError `validation_failed` */
function filePart(part: UIPart, where: string): MessagePart {
  const url = textIn(part, 'url', where);
  const { filename, mediaType } = part;
  const name = typeof filename === 'string' && filename !== '' ? { name: filename } : {};
  const given = typeof mediaType === 'string' && mediaType !== '' ? { content_type: mediaType } : {};
  const data = parseDataUrl(url);
  if (data !== undefined) return { ...name, ...partOfDataUrl(data, `${where}.url`), ...given };
  if (!/^https?:\/\//i.test(url)) {
    throw fail('validation_failed', `${where}.url`, 'expected a URL of http, https or data');
  }
  return { ...name, content_type: 'application/octet-stream', ...given, content_url: url };
}

/** What a user has said, as the parts of a UI message: the inverse of `partsOf`. */
export const uiPartsOf = (parts: readonly MessagePart[]): UIPart[] =>
  parts.map((part) => {
    const { providerMetadata } = asObject(part);
    return { ...uiPartOf(asObject(part)), providerMetadata };
  });

function uiPartOf(part: OwnPart): UIPart {
  const { content_type = 'text/plain', content = '', content_encoding, content_url, name, type, id } = part;
  if (typeof type === 'string' && type.startsWith('data-')) {
    const { value } = jsonIn(content) ?? { value: content };
    return { type, ...(typeof id === 'string' && { id }), data: value };
  }
  const filename = name === undefined ? {} : { filename: name };
  if (content_url !== undefined) return { type: 'file', mediaType: content_type, url: content_url, ...filename };
  if (content_encoding === 'base64') {
    return { type: 'file', mediaType: content_type, url: `data:${content_type};base64,${content}`, ...filename };
  }
  if (isProse(part)) return { type: 'text', text: content };
  const url = `data:${content_type},${encodeURIComponent(content)}`;
  return { type: 'file', mediaType: content_type, url, ...filename };
}

/** With the properties that the schema leaves open. */
type OwnPart = MessagePart & { readonly type?: unknown; readonly id?: unknown; readonly providerMetadata?: unknown };
const asObject = (part: MessagePart): OwnPart => part;

/** The id that a client has given a message of a run's input, or one that follows from its place. */
export function messageIdOf(run_id: string, message: Message & { readonly id?: unknown }, index: number): string {
  return typeof message.id === 'string' ? message.id : `${run_id}:i${index}`;
}
