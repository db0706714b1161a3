import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Client } from 'pg';
import { joinSockets } from './joined-sockets.ts';
import { listenOn } from './ports.ts';

/** Where a connection is ended: when the server has answered, or before it gets a request. */
export type Moment = 'answer' | 'request';

/**
 * A TCP proxy in front of PostgreSQL. It lets PostgreSQL end one of its processes at a chosen moment: when it has answered
 * so many requests, or before it gets so many. The last answer arrives in one piece with the error that ends the connection.
 */
export class TerminatingProxy {
  /** The URL of the server, by way of the proxy. */
  readonly url: string;
  readonly #server: Server;
  readonly #admin: Client;
  readonly #sockets = new Set<Socket>();
  #moment: Moment | undefined;
  #left = 0;

  private constructor(server: Server, url: string, admin: Client) {
    this.#server = server;
    this.url = url;
    this.#admin = admin;
  }

  /** `admin` is connected to the server itself. */
  static async open(target: string, admin: Client): Promise<TerminatingProxy> {
    const { hostname, port } = new URL(target);
    const server = createServer((client) => proxy.#join(client, connect(Number(port), hostname)));
    const url = new URL(target);
    url.host = new URL(await listenOn(server)).host;
    const proxy: TerminatingProxy = new TerminatingProxy(server, url.href, admin);
    return proxy;
  }

  /** Ends the connection that has the nth answer, or sends the nth request, from now on. */
  terminateAt(moment: Moment, nth: number): void {
    this.#moment = moment;
    this.#left = nth;
  }

  /** Ends no more connections. Returns whether one was ended. */
  spare(): boolean {
    this.#moment = undefined;
    return this.#left === 0;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #isDue(moment: Moment): boolean {
    if (this.#moment !== moment || this.#left === 0) return false;
    this.#left -= 1;
    return this.#left === 0;
  }

  #join(client: Socket, upstream: Socket): void {
    let pid: number | undefined;
    /** What the client gets at the end of the connection. */
    let held: Buffer[] | undefined;
    let rest = Buffer.alloc(0);
    const terminate = (): void => {
      void this.#admin.query('SELECT pg_terminate_backend($1)', [pid]);
    };
    joinSockets(this.#sockets, client, upstream, (other) => {
      if (other === client && held !== undefined) client.end(Buffer.concat(held));
      else other.destroySoon();
    });
    client.on('data', (chunk: Buffer) => {
      if (pid !== undefined && this.#isDue('request')) terminate();
      else upstream.write(chunk);
    });
    upstream.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      // A message: its type, its length without the type, and its data.
      while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
        const message = rest.subarray(0, 1 + rest.readInt32BE(1));
        rest = rest.subarray(message.length);
        const type = String.fromCharCode(message[0] ?? 0);
        if (type === 'K') pid = message.readInt32BE(5);
        // `Z`: ready for the next request.
        if (held === undefined && type === 'Z' && this.#isDue('answer')) {
          held = [];
          terminate();
        }
        if (held === undefined) client.write(message);
        else held.push(message);
      }
    });
  }
}
