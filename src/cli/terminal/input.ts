import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { text as textIn } from 'node:stream/consumers';
import mime from 'mime';
import type { PartInput } from '../../client/input.ts';
import { artifact } from '../../core/parts.ts';
import { fileProblem, UsageError } from '../exit-codes.ts';

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

async function filePart(path: string): Promise<PartInput> {
  const bytes = await readFile(path).catch((error) => {
    throw new UsageError(`${path}: ${fileProblem(error)}`);
  });
  return artifact(basename(path), bytes, mime.getType(path) ?? undefined);
}

const maxEntries = 500;
const maxChars = 2_000;

/** The folder where programs keep what may be lost, such as histories. */
function stateFolder({ XDG_STATE_HOME, LOCALAPPDATA }: NodeJS.ProcessEnv): string {
  if (process.platform === 'win32') return LOCALAPPDATA ?? homedir();
  return XDG_STATE_HOME || join(homedir(), '.local', 'state');
}

/**
 * The lines that were typed into `rivulet chat`, in a file of the user. It is a convenience: a file that cannot be read or
 * written is no error.
 */
export class InputHistory {
  readonly #path: string;
  #lines: string[];

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.#path = join(stateFolder(env), 'rivulet', 'history');
    const lines = ignoringErrors(() => readFileSync(this.#path, 'utf8').split('\n').filter(Boolean)) ?? [];
    this.#lines = lines.slice(-maxEntries);
    // Other chats append at the same time, so the file is only cut when it is read.
    if (lines.length > 2 * maxEntries) {
      ignoringErrors(() => writeFileSync(this.#path, `${this.#lines.join('\n')}\n`, { mode: 0o600 }));
    }
  }

  /** Newest first. */
  get lines(): string[] {
    return this.#lines.toReversed();
  }

  /** Adds the lines of a message. */
  add(message: string): void {
    const added = message.split('\n').filter((line) => line.trim() !== '' && line.length <= maxChars);
    if (added.length === 0) return;
    this.#lines = [...this.#lines, ...added].slice(-maxEntries);
    ignoringErrors(() => {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
      appendFileSync(this.#path, `${added.join('\n')}\n`, { mode: 0o600 });
    });
  }
}

function ignoringErrors<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
