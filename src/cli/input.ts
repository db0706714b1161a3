import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { text as textIn } from 'node:stream/consumers';
import mime from 'mime';
import type { PartInput } from '../client/input.ts';
import { artifact } from '../core/parts.ts';
import { UsageError } from './exit-codes.ts';

/** The text of an argument; `-` stands for the content of stdin. */
export const textOrStdin = async (text: string): Promise<string> => (text === '-' ? textIn(process.stdin) : text);

/** The input of a run: the text, and each file as a part, UTF-8 as text and other bytes in base64. @throws UsageError that names the file */
export async function readInput(text: string | undefined, files: readonly string[]): Promise<PartInput[]> {
  if (text === undefined && files.length === 0) {
    throw new UsageError(
      "the run has no input: give a text, - to read it from stdin, or --file PATH; '' is an empty text",
    );
  }
  const parts = await Promise.all(files.map(filePart));
  return text === undefined ? parts : [await textOrStdin(text), ...parts];
}

/** What is wrong with a path, by the code of the error. */
const problems: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'is a folder; give a file',
  EACCES: 'may not be read by this user',
};

async function filePart(path: string): Promise<PartInput> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${path}: ${problems[error.code ?? ''] ?? error.message}`);
  });
  return artifact(basename(path), bytes, mime.getType(path) ?? undefined);
}
