/** The load of small requests: kept connections, each with the next request as soon as the last one is answered. */
import { connect } from 'node:net';

export interface Requests {
  readonly port: number;
  readonly connections: number;
  /** Number of requests on all connections; a multiple of `connections`. */
  readonly count: number;
  /** Head and body of each request. */
  readonly request: string;
  /** Whether an answer is correct. */
  readonly right: (answer: string) => boolean;
}

/** Resolves to the last answer of each connection. @throws Error with the first incorrect answer */
export const requests = ({ connections, count, ...asked }: Requests): Promise<string[]> =>
  Promise.all(Array.from({ length: connections }, () => connection(asked, count / connections)));

type Asked = Omit<Requests, 'connections' | 'count'>;

function connection({ port, request, right }: Asked, count: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let left = count;
    let text = '';
    socket.setEncoding('latin1').setNoDelay(true);
    socket.write(request);
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (!isWhole(text)) return;
      const answer = text;
      text = '';
      left -= 1;
      if (!right(answer)) {
        socket.destroy();
        return reject(new Error(`a wrong answer: ${answer}`));
      }
      if (left > 0) return void socket.write(request);
      socket.end();
      resolve(answer);
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`a connection was closed with ${left} requests to go`)));
  });
}

function isWhole(text: string): boolean {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const length = /content-length: (\d+)/i.exec(text)?.[1];
  return length !== undefined && text.length >= head + 4 + Number(length);
}

export const bodyOf = (answer: string): string => answer.slice(answer.indexOf('\r\n\r\n') + 4);
