import { PassThrough } from 'node:stream';
import { Terminal } from '../../src/cli/terminal/terminal.ts';

/** `rich` has colours; `plain` is a terminal without them; `pipe` is none. */
export type Kind = 'rich' | 'plain' | 'pipe';

/** A terminal, or two pipes, and what was printed. `both` has all output in its order, as one screen gets it. */
export function fakeTerminal(kind: Kind, columns = 200) {
  let both = '';
  const streams = [new PassThrough(), new PassThrough()].map((stream) => {
    const shown = { isTTY: kind !== 'pipe', hasColors: () => kind === 'rich', columns, rows: 30 };
    const written: string[] = [];
    const write = (text: string): boolean => {
      written.push(text);
      both += text;
      return true;
    };
    return { stream: Object.assign(stream, shown, { write }), written };
  });
  const [out, err] = streams;
  const read = (stream: typeof out): string => stream?.written.splice(0).join('') ?? '';
  return {
    // The Terminal uses only these members of a stream.
    terminal: new Terminal(out?.stream as unknown as NodeJS.WriteStream, err?.stream as unknown as NodeJS.WriteStream),
    out: () => read(out),
    err: () => read(err),
    both: () => both,
  };
}

const sequence = new RegExp(`${'\\u001b'}\\[(?:\\d*(?:;\\d+)*m|\\d*A|J)|\\r(?=${'\\u001b'}\\[J)`, 'g');
/** The text without the colours, and the moves of the cursor, that the command line itself prints. */
export const withoutStyles = (text: string): string => text.replace(sequence, '');
