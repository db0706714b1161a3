import { connect } from 'node:net';
import type { Malformed } from './malformed.ts';
import { isErrorObject } from './malformed-protocols.ts';

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/**
 * Sends bytes over a new connection, and resolves to the responses when the connection has ended. A client that only
 * reads may wait for at most `requestTimeout` milliseconds.
 * @throws Error if the server neither responds nor closes
 */
export function send(port: number, { name, bytes, after }: Malformed, requestTimeout = 60_000): Promise<Answer[]> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1');
    socket.setTimeout(requestTimeout, () => {
      socket.destroy();
      reject(new Error(`no answer in ${requestTimeout} ms to ${name}: ${excerpt(bytes)}`));
    });
    socket.on('data', (chunk) => chunks.push(chunk));
    // A reset is an end as well: the server need not read a malformed request.
    socket.on('error', () => {});
    socket.on('close', () => resolve(parse(Buffer.concat(chunks).toString('latin1'))));
    socket.write(bytes, () => {
      if (after === 'end') socket.end();
      if (after === 'reset') socket.resetAndDestroy();
    });
  });
}

export const excerpt = (bytes: Buffer): string => JSON.stringify(bytes.toString('latin1').slice(0, 400));

/** The responses in the bytes of a connection, without one that is cut off. */
function parse(text: string): Answer[] {
  const answers: Answer[] = [];
  for (let at = text.indexOf('HTTP/1.1 '); at >= 0; at = text.indexOf('HTTP/1.1 ', at)) {
    const end = text.indexOf('\r\n\r\n', at);
    if (end < 0) break;
    const head = text.slice(at, end);
    const status = Number(head.slice(9, 12));
    const length = /^content-length: *(\d+)/im.exec(head)?.[1];
    at = end + 4;
    if (status < 200) continue;
    const body = text.slice(at, length === undefined ? undefined : at + Number(length));
    // Only streams have no length, and they do not contain the first line of another response.
    if (length !== undefined) at += Number(length);
    if (length === undefined || body.length === Number(length)) {
      answers.push({ status, body: Buffer.from(body, 'latin1').toString() });
    }
  }
  return answers;
}

/** The defect of a response to a malformed request; undefined if there is none. */
export function fault({ status, body }: Answer, isError = isErrorObject): string | undefined {
  if (status >= 500 && status !== 503) return `it answered ${status}: ${body.slice(0, 200)}`;
  if (status < 300 || status === 304) return undefined;
  // Node itself responds, without a body, to a missing Host and to an unknown Expect.
  if ((status === 400 || status === 417) && body === '0\r\n\r\n') return undefined;
  return isError(body) ? undefined : `${status} without an error of the protocol: ${body.slice(0, 200)}`;
}
