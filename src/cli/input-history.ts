import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

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
