import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { UnorderedSet } from '../core/collections.ts';
import { fail, type RivuletError } from '../core/errors.ts';

/** While the server closes: milliseconds between looks for idle connections, and until all others are closed. */
const closeEvery = 20;
const closeAfter = 5_000;

interface Connection {
  readonly socket: Socket;
  /** Requests whose responses have not ended, and the newest of them. */
  open: number;
  newest: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined;
  /** When the last response ended, or the connection began, as `performance.now()` has it. */
  idleSince: number;
}

/** The connections of a server, and how many requests of each are being answered. Costs one listener a request. */
export class Connections {
  readonly #server: Server;
  readonly #all = new UnorderedSet<Connection>();
  readonly #bySocket = new WeakMap<Socket, Connection>();

  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket: Socket) => {
      const connection = { socket, open: 0, newest: undefined, idleSince: performance.now() };
      this.#bySocket.set(socket, connection);
      socket.once('close', this.#all.add(connection));
    });
    server.on('request', (request, response) => this.#opened(request, response));
  }

  #opened(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#bySocket.get(request.socket);
    if (connection === undefined) return;
    connection.open += 1;
    connection.newest = { request, response };
    response.once('close', () => {
      connection.open -= 1;
      if (connection.open > 0) return;
      connection.newest = undefined;
      connection.idleSince = performance.now();
    });
  }

  /**
   * Closes connections without a request for so many milliseconds, until the server closes. Node's own time-out begins
   * again with every byte: a client that sends a line feed now and then would keep its connection for ever.
   */
  closeIdle(keepAliveTimeout: number, every: number): void {
    const look = (): void => {
      const since = performance.now() - keepAliveTimeout;
      for (const { socket, open, idleSince } of this.#all.all()) if (open === 0 && idleSince < since) socket.destroy();
    };
    this.#server.once('listening', () => {
      const timer = setInterval(look, every);
      timer.unref();
      this.#server.once('close', () => clearInterval(timer));
    });
  }

  /**
   * Lets the server close soon. Node closes only those that are idle at that moment: one whose stream has just ended
   * would be kept alive for minutes, and one that a browser opened ahead of need, and never used, for ever.
   */
  close(): void {
    if (!this.#server.listening) return;
    const sweep = setInterval(() => {
      for (const { socket, open } of this.#all.all()) if (open === 0) socket.destroy();
    }, closeEvery);
    const end = setTimeout(() => this.#server.closeAllConnections(), closeAfter);
    this.#server.once('close', () => {
      clearInterval(sweep);
      clearTimeout(end);
    });
  }

  /**
   * Answers what is no HTTP, or came too slowly, on the bare socket, and closes it. Where an earlier request is being
   * answered it closes only: whatever is written then would become a part of that answer.
   */
  readonly refuse = (error: NodeJS.ErrnoException, socket: Socket): void => {
    const unused = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0;
    if (error.code === 'ECONNRESET' || !socket.writable || unused || this.#answering(socket)) {
      socket.destroy();
      return;
    }
    const known = refusal(error.code);
    const body = JSON.stringify(known);
    socket.end(
      `HTTP/1.1 ${known.status} ${STATUS_CODES[known.status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  };

  /** Whether there is an answer to come but the one to the request that is wrong itself, in its body. */
  #answering(socket: Socket): boolean {
    const { open = 0, newest } = this.#bySocket.get(socket) ?? {};
    const inBody = newest !== undefined && !newest.request.complete && !newest.response.headersSent;
    return open > (inBody ? 1 : 0);
  }
}

function refusal(code: string | undefined): RivuletError {
  if (code === 'HPE_HEADER_OVERFLOW') return fail('header_overflow');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return fail('request_timeout');
  return fail('bad_request', 'The request is not valid HTTP.');
}
