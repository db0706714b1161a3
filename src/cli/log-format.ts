import { LineBuffer } from './line-buffer.ts';
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
