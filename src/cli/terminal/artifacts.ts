import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { extname, join } from 'node:path';
import mime from 'mime';
import { answerText } from '../../client/operators.ts';
import { messageOf } from '../../core/json.ts';
import type { MessagePart } from '../../schema/message.ts';
import { UsageError } from '../exit-codes.ts';
import { oneLine } from './format.ts';

/** Whether a part is an artifact: a file, data, or a link to content elsewhere. Text, citations and steps are not. */
export function isArtifact(part: MessagePart): boolean {
  const { name, content = '', content_url, metadata } = part;
  if (metadata?.kind === 'trajectory' || metadata?.kind === 'citation') return false;
  return answerText(part) === '' && (name !== undefined || content_url !== undefined || content !== '');
}

/** The content's bytes; empty if the part only links to it. */
const bytesOf = ({ content = '', content_encoding }: MessagePart): Buffer =>
  Buffer.from(content, content_encoding === 'base64' ? 'base64' : 'utf8');

/** Saves an artifact if there is a folder. Returns a line with its name, type, size or URL, and the result. */
export function saveArtifact(part: MessagePart, folder: ArtifactFolder | undefined): string {
  const { name = 'data', content_type = 'text/plain', content_url } = part;
  const description = `${name} (${content_type}, ${content_url ?? `${bytesOf(part).length} bytes`})`;
  return [oneLine(description), folder?.save(part)].filter(Boolean).join(' ');
}

/** Makes the folder of `--out`, so that an error comes now and not with the first artifact. @throws UsageError that names it */
export async function makeArtifactFolder(out: string | undefined): Promise<void> {
  if (out === undefined) return;
  await mkdir(out, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    const isFile = error.code === 'EEXIST' || error.code === 'ENOTDIR';
    throw new UsageError(`--out ${out}: ${isFile ? 'is a file, or is inside of one; give a folder' : error.message}`);
  });
}

/**
 * A folder that artifacts are saved in. No file is overwritten: a name that exists gets a number. The agent chooses the
 * names, so only the last segment of a path is used, and no file outside of the folder can be written.
 */
export class ArtifactFolder {
  readonly #folder: string;
  /** The next number to try for each name that existed. Counting from 1 each time would cost more with each artifact. */
  readonly #nextCopy = new Map<string, number>();
  /** The number of artifacts that could not be saved. */
  failures = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Saves a part. Returns the path or the error as text: a failure does not end the stream. */
  save(part: MessagePart): string {
    if (part.content_url !== undefined) return '';
    try {
      return `saved as ${this.#write(part)}`;
    } catch (error) {
      this.failures += 1;
      return `was not saved: ${messageOf(error)}`;
    }
  }

  #write(part: MessagePart): string {
    mkdirSync(this.#folder, { recursive: true });
    const name = fileName(part);
    const bytes = bytesOf(part);
    const extension = extname(name);
    const stem = name.slice(0, name.length - extension.length);
    // File systems of macOS and Windows ignore case.
    const key = name.toLowerCase();
    for (let copy = this.#nextCopy.get(key) ?? 1; ; copy += 1) {
      const path = join(this.#folder, copy === 1 ? name : `${stem}-${copy}${extension}`);
      try {
        writeFileSync(path, bytes, { flag: 'wx' });
        if (copy > 1) this.#nextCopy.set(key, copy + 1);
        return path;
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
      }
    }
  }
}

/** Bytes. File systems allow 255, those that encrypt names 143; a number has to fit as well. */
const maxNameBytes = 120;
const maxExtensionBytes = 20;

/** Names that Windows reserves for devices, with any extension. */
const deviceName = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\.|$)/i;

/** The part's name as a file name that is valid on any system. */
export function fileName({ name = '', content_type = 'text/plain' }: MessagePart): string {
  const last = (name.split(/[\\/]/).at(-1) ?? '')
    .replace(/[\p{Cc}\p{Bidi_Control}<>:"|?*]/gu, '_')
    // Windows removes trailing dots and spaces. Each run of them is searched once.
    .replace(/(?<![. ])[. ]+$/, '')
    // No hidden files, and no names that look like an option.
    .replace(/^[.-]+/, '_');
  if (last === '') return `part.${mime.getExtension(content_type) ?? 'bin'}`;
  const extension = extname(last);
  const keptExtension = Buffer.byteLength(extension) > maxExtensionBytes ? '' : extension;
  const stem = cutBytes(
    last.slice(0, last.length - keptExtension.length),
    maxNameBytes - Buffer.byteLength(keptExtension),
  );
  return deviceName.test(last) ? `_${stem}${keptExtension}` : `${stem}${keptExtension}`;
}

/** The beginning of a text in at most `maxBytes` bytes, without splitting a character. */
function cutBytes(text: string, maxBytes: number): string {
  let bytes = 0;
  let kept = '';
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes) break;
    kept += character;
  }
  return kept;
}
