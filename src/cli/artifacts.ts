import { mkdirSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import mime from 'mime';
import { textOf } from '../client/operators.ts';
import type { MessagePart } from '../schema/message.ts';
import { oneLine } from './printable.ts';

/** Whether a part is neither text nor about the text: a file, data, or something that is elsewhere. */
export function isArtifact(part: MessagePart): boolean {
  const { name, content = '', content_url, metadata } = part;
  if (metadata?.kind === 'trajectory' || metadata?.kind === 'citation') return false;
  return textOf(part) === '' && (name !== undefined || content_url !== undefined || content !== '');
}

/** The content's bytes; empty where the part only points to it. */
const bytesOf = ({ content = '', content_encoding }: MessagePart): Buffer =>
  Buffer.from(content, content_encoding === 'base64' ? 'base64' : 'utf8');

/** One line about an artifact: name, type, size or place, and what became of it in the folder. */
export function keep(part: MessagePart, folder: ArtifactFolder | undefined): string {
  const { name = 'data', content_type = 'text/plain', content_url } = part;
  const what = `${name} (${content_type}, ${content_url ?? `${bytesOf(part).length} bytes`})`;
  return [oneLine(what), folder?.save(part)].filter(Boolean).join(' ');
}

/**
 * A folder that artifacts are saved in. Nothing is overwritten: a name that is taken gets a number. The names are the
 * agent's, so that only the last piece of one is used, and no file outside of the folder can be meant.
 */
export class ArtifactFolder {
  readonly #folder: string;
  /** The number to try next for each name that was taken: to count from 1 each time costs more with each artifact. */
  readonly #next = new Map<string, number>();
  /** Artifacts that could not be saved. */
  lost = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Saves a part, and returns what became of it: the answer goes on where it cannot be saved. */
  save(part: MessagePart): string {
    if (part.content_url !== undefined) return '';
    try {
      return `saved as ${this.#write(part)}`;
    } catch (error) {
      this.lost += 1;
      return `is not saved: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  #write(part: MessagePart): string {
    mkdirSync(this.#folder, { recursive: true });
    const name = fileName(part);
    const bytes = bytesOf(part);
    const extension = extname(name);
    const stem = name.slice(0, name.length - extension.length);
    // File systems of macOS and Windows do not tell upper from lower case.
    const key = name.toLowerCase();
    for (let copy = this.#next.get(key) ?? 1; ; copy += 1) {
      const path = join(this.#folder, copy === 1 ? name : `${stem}-${copy}${extension}`);
      try {
        writeFileSync(path, bytes, { flag: 'wx' });
        if (copy > 1) this.#next.set(key, copy + 1);
        return path;
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
      }
    }
  }
}

/** Bytes of a name: file systems take 255, some that encrypt names 143, and a number has to fit. */
const longestName = 120;
const longestExtension = 20;

/** Names that Windows keeps for its devices, whatever follows after a dot. */
const device = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\.|$)/i;

/** A name for a file on any system. */
export function fileName({ name = '', content_type = 'text/plain' }: MessagePart): string {
  const last = (name.split(/[\\/]/).at(-1) ?? '')
    .replace(/[\p{Cc}\p{Bidi_Control}<>:"|?*]/gu, '_')
    // Windows takes these away.
    .replace(/[. ]+$/, '')
    // Hidden files, and what looks like an option.
    .replace(/^[.-]+/, '_');
  if (last === '') return `part.${mime.getExtension(content_type) ?? 'bin'}`;
  const extension = extname(last);
  const kept = Buffer.byteLength(extension) > longestExtension ? '' : extension;
  const stem = cutBytes(last.slice(0, last.length - kept.length), longestName - Buffer.byteLength(kept));
  return device.test(last) ? `_${stem}${kept}` : `${stem}${kept}`;
}

/** As much of a text as has so many bytes, in whole characters. */
function cutBytes(text: string, most: number): string {
  let bytes = 0;
  let kept = '';
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > most) break;
    kept += character;
  }
  return kept;
}
