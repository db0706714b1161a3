import { type Static, Type } from '@sinclair/typebox';
import mime from 'mime/lite';
import { parseDataUrl, partOfDataUrl } from '../../core/data-url.ts';
import { fail } from '../../core/errors.ts';
import { isBase64 } from '../../core/messages.ts';
import type { MessagePart } from '../../schema/message.ts';

// The content of messages, as Responses and Chat Completions write it.

const name = Type.Optional(Type.String({ maxLength: 255 }));
const optionalText = Type.Optional(Type.String());

const Content = Type.Union([
  Type.Object({ type: Type.Literal('input_text'), text: Type.String() }),
  Type.Object({ type: Type.Literal('output_text'), text: Type.String() }),
  Type.Object({ type: Type.Literal('text'), text: Type.String() }),
  Type.Object({ type: Type.Literal('refusal'), refusal: Type.String() }),
  Type.Object({ type: Type.Literal('input_image'), image_url: optionalText }),
  Type.Object({ type: Type.Literal('image_url'), image_url: Type.Object({ url: Type.String() }) }),
  Type.Object({
    type: Type.Literal('input_file'),
    file_data: optionalText,
    file_url: optionalText,
    filename: name,
  }),
  Type.Object({ type: Type.Literal('file'), file: Type.Object({ file_data: optionalText, filename: name }) }),
  Type.Object({
    type: Type.Literal('input_audio'),
    input_audio: Type.Object({ data: Type.String(), format: Type.String({ pattern: '^[\\w.+-]{1,40}$' }) }),
  }),
]);
type Content = Static<typeof Content>;

/** The content of a message: a text, or parts. */
export const Contents = Type.Union([Type.String(), Type.Array(Content, { maxItems: 1_000 })]);
export type Contents = Static<typeof Contents>;

/** Content as parts; `path` names it in errors. @throws RivuletError `validation_failed` */
export function partsOf(contents: Contents, path: string): MessagePart[] {
  if (typeof contents === 'string') return [plain(contents)];
  return contents.map((content, index) => partOf(content, `${path}[${index}]`));
}

/** The text of content; parts without text have none. */
export function textOfContents(contents: Contents): string {
  if (typeof contents === 'string') return contents;
  return contents.map((content) => ('text' in content ? content.text : '')).join('');
}

const plain = (content: string): MessagePart => ({ content_type: 'text/plain', content });

function partOf(content: Content, path: string): MessagePart {
  switch (content.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return plain(content.text);
    case 'refusal':
      return plain(content.refusal);
    case 'input_image':
      return fileAt(content.image_url, path, 'image_url', 'image/*');
    case 'image_url':
      return fileAt(content.image_url.url, path, 'image_url', 'image/*');
    case 'input_file':
      return fileOf(content, path);
    case 'file':
      return fileOf(content.file, path);
    case 'input_audio': {
      const { data, format } = content.input_audio;
      return bytes(data, format === 'mp3' ? 'audio/mpeg' : `audio/${format}`, `${path}.input_audio.data`);
    }
  }
}

function bytes(content: string, content_type: string, path: string): MessagePart {
  if (!isBase64(content)) throw fail('validation_failed', path, 'expected base64');
  return { content_type, content_encoding: 'base64', content };
}

interface FileFields {
  readonly file_data?: string;
  readonly file_url?: string;
  readonly filename?: string;
}

function fileOf({ file_data, file_url, filename }: FileFields, path: string): MessagePart {
  const guessed = (filename !== undefined && mime.getType(filename)) || 'application/octet-stream';
  // Clients send a data URL, or the bare base64.
  const isBare = file_data !== undefined && !file_data.startsWith('data:');
  const file = isBare
    ? bytes(file_data, guessed, `${path}.file_data`)
    : fileAt(file_data ?? file_url, path, 'file_data or file_url', guessed);
  return { ...file, name: filename };
}

/** A file that a URL has or names. Files that were uploaded to another server are not here. */
function fileAt(url: string | undefined, path: string, field: string, otherwise: string): MessagePart {
  if (url === undefined) throw fail('validation_failed', path, `expected ${field}; this server keeps no files by id`);
  const data = parseDataUrl(url);
  if (data !== undefined) {
    return { ...partOfDataUrl(data, `${path}.${field}`), content_type: data.mediaType || otherwise };
  }
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw fail('validation_failed', `${path}.${field}`, 'expected a URL of http, https or data');
  }
  return { content_type: mime.getType(new URL(url).pathname) ?? otherwise, content_url: url };
}
