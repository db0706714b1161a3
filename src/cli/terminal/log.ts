import { terminal } from './terminal.ts';

export interface LogStream {
  write(line: string): void;
}

/** The stream of the logger, whose lines are lost where nothing reads them. JSON lines of a few milliseconds are written at once; lines to read are written as they come. */
export function logStream(format: string, isTerminal = terminal.isTerminal): LogStream {
  terminal.outliveOutput();
  if (isJson(format, isTerminal)) {
    const lines = new LineBuffer((bytes) => terminal.log(bytes));
    process.once('exit', lines.flush);
    return lines;
  }
  return { write: (line) => terminal.logLine(readable(line)) };
}

/** Whether lines are JSON in a format of the settings. */
export const isJson = (format: string, isTerminal = terminal.isTerminal): boolean =>
  format === 'json' || (format === 'auto' && !isTerminal);

const levels: Readonly<Record<number, string>> = {
  10: 'TRACE',
  20: 'DEBUG',
  30: 'INFO',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL',
};

/** What the line has in its own places, or what is the same in all lines. */
const placed = new Set(['level', 'time', 'msg', 'err', 'pid', 'hostname']);

/**
 * A line of the logger as people read it: time, level, text, then the fields, and an error's stack below. Not with
 * pino-pretty: it depends on a package that needs Node 22. @throws never: what is no JSON is returned as it is
 */
export function readable(line: string): string {
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(line);
  } catch {
    return line.trimEnd();
  }
  const { level, time, msg = '', err } = fields;
  const at = typeof time === 'number' ? new Date(time).toISOString().slice(11, 23) : '';
  const rest = Object.entries(fields)
    .filter(([name]) => !placed.has(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const head = [at, (levels[Number(level)] ?? String(level)).padEnd(5), String(msg), ...rest].join(' ');
  return `${head}${stackOf(err)}`;
}

function stackOf(err: unknown): string {
  if (typeof err !== 'object' || err === null) return '';
  const { stack, message }: { stack?: unknown; message?: unknown } = err;
  const text = typeof stack === 'string' && stack !== '' ? stack : String(message ?? '');
  return text === '' ? '' : `\n${text.replace(/^/gm, '    ')}`;
}

/** Milliseconds for which lines wait at most, and bytes of the buffer. */
const [maxWait, size] = [10, 64 * 1024];
/** Bytes of a character of a text in UTF-8, at most. */
const bytesOfChar = 3;
/** How a warning begins, and what is worse. */
const warning = /^\{"level":[4-6]/;

/**
 * Writes the lines of up to ten milliseconds with one call. A warning is written at once, with the lines before it, because
 * the process may end soon. A process that is killed loses the lines that wait. The lines wait as bytes in one buffer.
 */
export class LineBuffer {
  readonly #write: (bytes: Buffer) => void;
  readonly #bytes = Buffer.allocUnsafeSlow(size);
  #length = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(write: (bytes: Buffer) => void) {
    this.#write = write;
  }

  write(line: string): void {
    const most = line.length * bytesOfChar;
    if (this.#length + most > size) this.flush();
    if (most > size) {
      this.#write(Buffer.from(line));
    } else {
      this.#length += this.#bytes.write(line, this.#length);
      if (warning.test(line)) this.flush();
      else this.#timer ??= setTimeout(this.flush, maxWait);
    }
  }

  readonly flush = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // A copy: what writes it may do so later.
    const bytes = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    if (bytes.length > 0) this.#write(bytes);
  };
}
