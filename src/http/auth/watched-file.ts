import { readFileSync, realpathSync, statSync } from 'node:fs';
import { messageOf } from '../../core/json.ts';

/** Milliseconds between two looks at the file. */
const checkEvery = 4_000;
const maxBytes = 4 * 1024 * 1024;

export interface WatchedFileOptions<T> {
  readonly path: string;
  /** What to do where there is no such file. */
  readonly ifMissing?: string;
  /** @throws Error that says what is wrong with the text */
  readonly parse: (text: string) => T;
  readonly onChange?: (value: T) => void;
  /** Called once for each state of the file that cannot be used; the value stays as it was. */
  readonly onProblem: (error: Error) => void;
}

/**
 * A small file that is read again after each change. The file is looked at, not watched: Kubernetes replaces the target
 * of a link, which `fs.watch` does not notice.
 */
export class WatchedFile<T> {
  readonly #options: WatchedFileOptions<T>;
  readonly #timer: NodeJS.Timeout;
  #state: string;
  #value: T;

  /** @throws Error that names the file, where it cannot be read, or others may write it */
  constructor(options: WatchedFileOptions<T>) {
    this.#options = options;
    this.#state = stateOf(options.path);
    this.#value = load(options);
    this.#timer = setInterval(() => this.check(), checkEvery).unref();
  }

  get value(): T {
    return this.#value;
  }

  /** Reads the file if it has changed since the last look. */
  check(): void {
    const { onChange, onProblem, path } = this.#options;
    const state = stateOf(path);
    if (state === this.#state) return;
    this.#state = state;
    try {
      this.#value = load(this.#options);
      onChange?.(this.#value);
    } catch (error) {
      onProblem(error instanceof Error ? error : new Error(String(error)));
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** A text that differs after each change of the file, and while the file is missing. */
function stateOf(path: string): string {
  try {
    const real = realpathSync(path);
    const { mtimeMs, ctimeMs, size, ino } = statSync(real);
    return [real, mtimeMs, ctimeMs, size, ino].join(' ');
  } catch (error) {
    return `unreadable: ${Object(error).code}`;
  }
}

function load<T>({ path, ifMissing, parse }: WatchedFileOptions<T>): T {
  try {
    const { mode, size } = statSync(path);
    // A user that may write the file decides which callers the server accepts. Windows has no such modes.
    if ((mode & 0o022) !== 0 && process.platform !== 'win32') {
      throw new Error(`other users may write it (mode ${(mode & 0o777).toString(8)}); run chmod go-w on it`);
    }
    if (size > maxBytes) throw new Error(`it has ${size} bytes; expected at most ${maxBytes}`);
    return parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (ifMissing !== undefined && Object(error).code === 'ENOENT') {
      throw new Error(`${path}: there is no such file; ${ifMissing}`, { cause: error });
    }
    throw new Error(`${path}: ${messageOf(error)}`, { cause: error });
  }
}
