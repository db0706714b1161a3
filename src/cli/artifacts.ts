import { mkdirSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import mime from 'mime';
import type { MessagePart } from '../schema/message.ts';

/** The content's bytes; empty where the part only points to it. */
export const bytesOf = ({ content = '', content_encoding }: MessagePart): Buffer =>
  Buffer.from(content, content_encoding === 'base64' ? 'base64' : 'utf8');

/**
 * Writes a part into a folder and returns the file's path. Nothing is overwritten: a name that is taken gets a number.
 * The name is the agent's, so no more of it is used than its last piece; nothing outside of the folder can be meant.
 */
export function saveArtifact(folder: string, part: MessagePart): string {
  mkdirSync(folder, { recursive: true });
  const name = fileName(part);
  const extension = extname(name);
  const stem = name.slice(0, name.length - extension.length);
  for (let copy = 1; ; copy += 1) {
    const path = join(folder, copy === 1 ? name : `${stem}-${copy}${extension}`);
    try {
      writeFileSync(path, bytesOf(part), { flag: 'wx' });
      return path;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
  }
}

function fileName({ name = '', content_type = 'text/plain' }: MessagePart): string {
  const last = (name.split(/[\\/]/).at(-1) ?? '').replace(/[\p{Cc}<>:"|?*]/gu, '_').slice(-100);
  return /^\.*$/.test(last) ? `part.${mime.getExtension(content_type) ?? 'bin'}` : last;
}
