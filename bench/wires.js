/** The wire format of each contestant: the request for tokens, and the events with them. */
import { token } from './contestants/tokens.js';
export const get = (path, headers = '') =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n${headers}\r\n`;
/** The key of all requests; only the contestant with authentication looks at it. */
export const key = 'rvk_ygxsYjJe_w0yhHgfH5wdL5cbJe1HKhOV9SIRVv52eofp4fcS0ib14evRTi';
export function post(path, body, { connection = 'close', headers = '' } = {}) {
  const text = JSON.stringify(body);
  const head =
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: ${connection}\r\n` +
    `Authorization: Bearer ${key}\r\n${headers}`;
  return `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
}
const events = { marker: '"type":"message.part"', content: (text) => `"content":"${text}"`, end: '\n\n' };
/** The servers written by hand. */
export const plain = { ...events, request: (tokens, pace) => get(`/${tokens}/${pace}`) };
/** The body of a request for a run of Rivulet. */
export const runOf = (agent_name, mode, content) => ({
  agent_name,
  mode,
  input: [{ role: 'user', parts: [{ content_type: 'text/plain', content }] }],
});
export const acp = {
  ...events,
  request: (tokens, pace) => post('/runs', runOf('tokens', 'stream', `${tokens}/${pace}`)),
};
const expected = new Map();
/** The text of token `n` in its event; cached, because a load needs each many times. */
export function textOf(wire, n) {
  const known = expected.get(wire) ?? [];
  expected.set(wire, known);
  for (let next = known.length; next <= n; next += 1) known.push(wire.content(token(next)));
  return known[n] ?? '';
}
