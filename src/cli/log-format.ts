import { reasonOf } from '../core/json.ts';
import { UsageError } from './exit-codes.ts';
import { LineBuffer } from './line-buffer.ts';
import { terminal } from './terminal.ts';

interface LogStream {
  write(line: string): void;
}

/** Control characters of a line, as JSON has them or as they are: they could change what the terminal shows. */
const controls = /\\u00(?:0[0-8bce-f]|1[0-9a-f]|[89][0-9a-f]|7f)|[\u007f-\u009f]/gi;

/**
 * The option `stream` of the logger. pino-pretty is imported only where it is used, and is optional: servers write JSON. It
 * is a stream of this process, because a worker thread would lose the last lines before a crash.
 * @throws UsageError if the format was asked for and pino-pretty is not installed
 */
export async function logStream(format: string, isTerminal = terminal.isTerminal): Promise<{ stream: LogStream }> {
  if (format === 'json' || (format === 'auto' && !isTerminal)) return { stream: jsonLines() };
  try {
    const { default: pretty } = await import('pino-pretty');
    const stream = pretty({
      colorize: isTerminal,
      ignore: 'pid,hostname',
      translateTime: 'HH:MM:ss.l',
      singleLine: true,
      sync: true,
    });
    return { stream: { write: (line) => stream.write(line.replace(controls, '')) } };
  } catch (error) {
    if (format === 'auto') return { stream: jsonLines() };
    throw new UsageError(
      `--log-format pretty needs the package pino-pretty: npm install pino-pretty (${reasonOf(error)})`,
    );
  }
}

function jsonLines(): LogStream {
  const lines = new LineBuffer((text) => terminal.answer(text));
  process.once('exit', lines.flush);
  return lines;
}
