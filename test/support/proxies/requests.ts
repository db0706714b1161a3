import { request as requestHttp } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { request as requestHttps } from 'node:https';
import type { Readable } from 'node:stream';
import type { StartedProxy } from './proxy.ts';

interface Asked {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

/** An answer whose body is read as it comes. */
export interface Answer {
  readonly status: number;
  /** The pieces of the body, as text. Throws where the connection was cut before the end of the body. */
  readonly body: AsyncIterable<string>;
  /** Closes the connection. */
  leave(): void;
}

/** Sends a request to a proxy. @throws Error where there is no answer */
export type Ask = (path: string, asked?: Asked) => Promise<Answer>;

const sent = ({ body, headers = {} }: Asked) => {
  const text = body === undefined ? '' : JSON.stringify(body);
  const length = { 'content-length': String(Buffer.byteLength(text)) };
  return {
    text,
    headers: body === undefined ? headers : { ...headers, ...length, 'content-type': 'application/json' },
  };
};

/** Requests with HTTP/1.1, each with a connection of its own: to the TLS port where the other one is not there. */
export const http1 =
  ({ port, tlsPort, ca }: StartedProxy, plain: boolean): Ask =>
  (path, asked = {}) =>
    new Promise((resolve, reject) => {
      const { text, headers } = sent(asked);
      const { method = asked.body === undefined ? 'GET' : 'POST' } = asked;
      const shared = { host: '127.0.0.1', path, method, headers, agent: false };
      const request = plain ? requestHttp({ ...shared, port }) : requestHttps({ ...shared, port: tlsPort, ca });
      request.on('error', reject).on('response', (response) => {
        response.setEncoding('utf8');
        resolve({ status: response.statusCode ?? 0, body: response, leave: () => void request.destroy() });
      });
      request.end(text);
    });

/** Requests with HTTP/2, each with a connection of its own. */
export const http2 =
  ({ tlsPort, ca }: StartedProxy): Ask =>
  (path, asked = {}) =>
    new Promise((resolve, reject) => {
      const { text, headers } = sent(asked);
      const { method = asked.body === undefined ? 'GET' : 'POST' } = asked;
      const session = connectHttp2(`https://127.0.0.1:${tlsPort}`, { ca });
      const stream = session.request({ ':path': path, ':method': method, ...headers }, { endStream: text === '' });
      session.on('error', reject);
      stream.setEncoding('utf8').on('error', reject);
      stream.on('response', ({ ':status': status = 0 }) => {
        const leave = (): void => {
          stream.close(constants.NGHTTP2_CANCEL);
          session.destroy();
        };
        resolve({ status, body: whole(stream), leave });
      });
      stream.on('close', () => session.close());
      if (text !== '') stream.end(text);
    });

/** The pieces of a stream. Node ends a stream that the server has reset with some codes as if it were whole. */
async function* whole(stream: Readable & { readonly rstCode?: number | undefined }): AsyncGenerator<string> {
  yield* stream;
  if (stream.rstCode !== undefined && stream.rstCode !== constants.NGHTTP2_NO_ERROR)
    throw new Error(`the stream was reset with code ${stream.rstCode}`);
}

export const textOf = async ({ body }: Answer): Promise<string> => {
  let text = '';
  for await (const piece of body) text += piece;
  return text;
};
