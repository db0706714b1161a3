import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';
import { Counts, UnorderedSet } from '../core/collections.ts';
import { fail, type RivuletError } from '../core/errors.ts';
import type { AddressRule } from './outbound/address-guard.ts';
import { securityHeaders } from './pages/security-headers.ts';
import { networkOf } from './requests/client-network.ts';
import { type TrafficObserver, unobserved } from './traffic.ts';

/** While the server closes: milliseconds between checks for idle connections, and until all others are closed. */
const closeInterval = 20;
const closeTimeout = 5_000;

interface Connection {
  readonly socket: Socket;
  /** Number of requests whose responses have not ended, and the newest of these requests. */
  open: number;
  newest: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined;
  /** When the last response ended or the connection opened, by `performance.now()`. */
  idleSince: number;
}

/** The connections of a server, with their open requests. */
export class Connections {
  readonly #server: Server;
  readonly #all = new UnorderedSet<Connection>();
  readonly #bySocket = new WeakMap<Socket, Connection>();
  #traffic: TrafficObserver = unobserved;
  #lines: Pick<FastifyBaseLogger, 'info'> | undefined;

  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket: Socket) => {
      const connection = { socket, open: 0, newest: undefined, idleSince: performance.now() };
      this.#bySocket.set(socket, connection);
      socket.once('close', this.#all.add(connection));
    });
    server.on('request', (request, response) => this.#countRequest(request, response));
  }

  #countRequest(request: IncomingMessage, response: ServerResponse): void {
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
   * Checks at an interval for connections without a request for `keepAliveTimeout` ms, and closes them. Node's own
   * time-out restarts with every byte, so a client that sends line feeds would keep its connection for ever.
   */
  closeIdle(keepAliveTimeout: number, interval: number): void {
    const closeExpired = (): void => {
      const since = performance.now() - keepAliveTimeout;
      for (const { socket, open, idleSince } of this.#all.all()) if (open === 0 && idleSince < since) socket.destroy();
    };
    this.#server.once('listening', () => {
      const timer = setInterval(closeExpired, interval);
      timer.unref();
      this.#server.once('close', () => clearInterval(timer));
    });
  }

  /** Closes each further connection of a client that has `limit` of them. Those of proxies have no limit. */
  limitByAddress(limit: number, isProxy: AddressRule): void {
    const counts = new Counts();
    this.#server.on('connection', (socket: Socket) => {
      const { remoteAddress } = socket;
      // Undefined where the client has left already.
      if (remoteAddress === undefined || isProxy(remoteAddress)) return;
      const network = networkOf(remoteAddress);
      if (counts.of(network) >= limit) return void socket.destroy();
      counts.add(network, 1);
      socket.once('close', () => counts.add(network, -1));
    });
  }

  /**
   * Closes connections as they become idle, so that the server closes soon. Node closes only connections that are idle
   * at that moment: one whose stream has just ended would stay open for minutes, and an unused one of a browser for
   * ever.
   */
  close(): void {
    if (!this.#server.listening) return;
    const idleTimer = setInterval(() => {
      for (const { socket, open } of this.#all.all()) if (open === 0) socket.destroy();
    }, closeInterval);
    const deadline = setTimeout(() => this.#server.closeAllConnections(), closeTimeout);
    this.#server.once('close', () => {
      clearInterval(idleTimer);
      clearTimeout(deadline);
    });
  }

  /** Reports requests that are refused before they are complete: to the metrics, and in lines of the log if there are any. */
  report(traffic: TrafficObserver, lines: Pick<FastifyBaseLogger, 'info'> | undefined): void {
    this.#traffic = traffic;
    this.#lines = lines;
  }

  /**
   * Answers invalid HTTP and slow requests on the bare socket, and closes it. While an earlier request is being
   * answered, it only closes the socket: anything written would become a part of that response.
   */
  readonly refuse = (error: NodeJS.ErrnoException, socket: Socket): void => {
    const unused = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0;
    if (error.code === 'ECONNRESET' || !socket.writable || unused || this.#isAnswering(socket)) {
      socket.destroy();
      return;
    }
    const refusal = refusalFor(error.code);
    this.#traffic.onRefused(refusal.kind);
    const { kind: reason, status } = refusal;
    this.#lines?.info({ status, ip: socket.remoteAddress, reason }, 'request');
    const body = JSON.stringify(refusal);
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\n${headerLines}` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n${body}`,
    );
  };

  /** Whether a response is pending, other than that to a request whose own body is invalid. */
  #isAnswering(socket: Socket): boolean {
    const { open = 0, newest } = this.#bySocket.get(socket) ?? {};
    const inBody = newest !== undefined && !newest.request.complete && !newest.response.headersSent;
    return open > (inBody ? 1 : 0);
  }
}

/** The headers that every response has. */
const headerLines = Object.entries(securityHeaders)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');

function refusalFor(code: string | undefined): RivuletError {
  if (code === 'HPE_HEADER_OVERFLOW') return fail('header_overflow');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return fail('request_timeout');
  return fail('bad_request', 'The request is not valid HTTP.');
}
