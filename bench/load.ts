/** The load generator: opens streams on raw sockets, and counts and checks every event that comes. */
import { connect } from 'node:net';
import { token } from './contestants/tokens.ts';

export interface Asked {
  readonly port: number;
  /** The request's head and body, as it goes over the wire. */
  readonly request: string;
  readonly tokens: number;
}

export interface Seen {
  readonly tokens: number;
  /** Milliseconds from the request to the first token. */
  readonly first: number;
}

const expected: string[] = [];
const quoted = (n: number): string => {
  for (let next = expected.length; next <= n; next += 1) expected.push(`"content":${JSON.stringify(token(next))}`);
  return expected[n] ?? '';
};

const marker = '"type":"message.part"';

/**
 * Reads one stream to its end. Each token has to be the next one; anything else is an error.
 * It looks for what it expects instead of parsing, so that the generator is not what is measured.
 */
export function stream({ port, request, tokens }: Asked): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const begun = performance.now();
    let first = 0;
    let seen = 0;
    let rest = '';
    socket.setEncoding('latin1').setNoDelay(true);
    socket.write(request);
    socket.on('data', (chunk: string) => {
      const text = rest + chunk;
      let at = 0;
      for (;;) {
        const found = text.indexOf(marker, at);
        if (found < 0) break;
        const end = text.indexOf('\n\n', found);
        if (end < 0) break;
        const content = text.indexOf(quoted(seen), found);
        if (content < 0 || content > end) {
          socket.destroy();
          return reject(new Error(`token ${seen} did not come; there was ${text.slice(found, end)}`));
        }
        if (seen === 0) first = performance.now() - begun;
        seen += 1;
        at = end;
      }
      const open = text.indexOf(marker, at);
      rest = open < 0 ? text.slice(Math.max(at, text.length - marker.length)) : text.slice(open);
      if (text.includes('\r\n0\r\n\r\n')) socket.end();
    });
    socket.on('error', reject);
    socket.on('close', () => {
      if (seen === tokens) resolve({ tokens: seen, first });
      else reject(new Error(`${seen} of ${tokens} tokens came`));
    });
  });
}
