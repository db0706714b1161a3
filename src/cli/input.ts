import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { text as textIn } from 'node:stream/consumers';
import mime from 'mime';
import type { PartInput } from '../client/input.ts';
import { UsageError } from './usage-error.ts';

/** A text as the command line has it: `-` is what stdin says. */
export const textOrStdin = async (text: string): Promise<string> => (text === '-' ? textIn(process.stdin) : text);

/** What an agent is given: the text, and each file as a part of base64. @throws UsageError that names the file */
export async function inputOf(text: string | undefined, files: readonly string[]): Promise<PartInput[]> {
  if (text === undefined && files.length === 0) {
    throw new UsageError(
      "there is nothing to run it on: give a text, - for what stdin says, or --file PATH; '' is a text too",
    );
  }
  const parts = await Promise.all(files.map(fileInput));
  return text === undefined ? parts : [await textOrStdin(text), ...parts];
}

async function fileInput(path: string): Promise<PartInput> {
  const bytes = await readFile(path).catch((error: Error) => {
    throw new UsageError(`--file ${path}: ${error.message}`);
  });
  return {
    name: basename(path),
    content_type: mime.getType(path) ?? 'application/octet-stream',
    content_encoding: 'base64',
    content: bytes.toString('base64'),
  };
}
