/** The wire format of each contestant: the request for tokens, and the events with them. */
import { key } from './contestants/key.ts';
import { token } from './contestants/tokens.ts';

export interface Wire {
  /** The request for a stream of `tokens` at a pace: head and body, as sent. */
  request(tokens: number, pace: number | 'hold'): string;
  /** A text that only events of tokens contain, before the token. */
  readonly marker: string;
  /** The form of a token's text in its event. */
  content(text: string): string;
  /** The end of an event. */
  readonly end: string;
}

export const get = (path: string, headers = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n${headers}\r\n`;

export function post(path: string, body: unknown, { connection = 'close', headers = '' } = {}): string {
  const text = JSON.stringify(body);
  const head =
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: ${connection}\r\n` +
    `Authorization: Bearer ${key}\r\n${headers}`;
  return `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
}

const events = { marker: '"type":"message.part"', content: (text: string) => `"content":"${text}"`, end: '\n\n' };

/** The servers written by hand. */
export const plain: Wire = { ...events, request: (tokens, pace) => get(`/${tokens}/${pace}`) };

/** The body of a request for a run of Rivulet. */
export const runOf = (agent_name: string, mode: 'sync' | 'async' | 'stream', content: string) => ({
  agent_name,
  mode,
  input: [{ role: 'user', parts: [{ content_type: 'text/plain', content }] }],
});

export const acp: Wire = {
  ...events,
  request: (tokens, pace) => post('/runs', runOf('tokens', 'stream', `${tokens}/${pace}`)),
};

const expected = new Map<Wire, string[]>();

/** The text of token `n` in its event; cached, because a load needs each many times. */
export function textOf(wire: Wire, n: number): string {
  const known = expected.get(wire) ?? [];
  expected.set(wire, known);
  for (let next = known.length; next <= n; next += 1) known.push(wire.content(token(next)));
  return known[n] ?? '';
}
