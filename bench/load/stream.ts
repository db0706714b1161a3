/** The load generator: opens streams on raw sockets, and counts and checks every token. */
import { connect } from 'node:net';
import { textOf, type Wire } from '../wires.ts';

export interface Expected {
  readonly port: number;
  /** Head and body of the request, as sent. */
  readonly request: string;
  readonly wire: Wire;
  /** Number of expected tokens. */
  readonly tokens: number;
  /** Number of the first expected token. Default 0. */
  readonly from?: number;
  /** Called at the first token. */
  readonly onFirst?: () => void;
}

export interface Seen {
  /** Milliseconds from the request to the first token, and to the end. */
  readonly first: number;
  readonly whole: number;
}

/**
 * Reads one stream to its end. Each token must be the next one; anything else is an error. Searches for the expected
 * text instead of parsing, so that the generator does not limit the measurement.
 */
export function stream({ port, request, wire, tokens, from = 0, onFirst }: Expected): Promise<Seen> {
  const { marker, end } = wire;
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const begun = performance.now();
    let first = 0;
    let seen = 0;
    let rest = '';
    let last = '';
    socket.setEncoding('latin1').setNoDelay(true);
    socket.write(request);
    socket.on('data', (chunk: string) => {
      const text = rest + chunk;
      let at = 0;
      for (;;) {
        const found = text.indexOf(marker, at);
        if (found < 0) break;
        const ends = text.indexOf(end, found);
        if (ends < 0) break;
        const content = text.indexOf(textOf(wire, from + seen), found);
        if (content < 0 || content > ends) {
          socket.destroy();
          return reject(new Error(`token ${from + seen} did not come; there was ${text.slice(found, ends)}`));
        }
        if (seen === 0) {
          first = performance.now() - begun;
          onFirst?.();
        }
        seen += 1;
        at = ends;
      }
      const open = text.indexOf(marker, at);
      rest = open < 0 ? text.slice(Math.max(at, text.length - marker.length)) : text.slice(open);
      last = chunk;
      if (text.endsWith('\r\n0\r\n\r\n')) socket.end();
    });
    socket.on('error', reject);
    socket.on('close', () => {
      if (seen === tokens) resolve({ first, whole: performance.now() - begun });
      else reject(new Error(`${seen} of ${tokens} tokens came; the last that came was ${last.slice(-300)}`));
    });
  });
}
