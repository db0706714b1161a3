import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { joinSockets } from './joined-sockets.ts';
import { listenOn } from './ports.ts';

/** A TCP proxy in front of a database server, which can drop responses. */
export class OutageProxy {
  /** The URL of the server, by way of the proxy. */
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #fatal: { request: string; cut: () => void } | undefined;
  readonly #mute = new WeakSet<Socket>();

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  static async open(target: string): Promise<OutageProxy> {
    const { hostname, port } = new URL(target);
    const server = createServer((client) => proxy.#join(client, connect(Number(port), hostname)));
    const url = new URL(target);
    url.host = new URL(await listenOn(server)).host;
    const proxy: OutageProxy = new OutageProxy(server, url.href);
    return proxy;
  }

  /** The number of connections. */
  get connections(): number {
    return Math.ceil(this.#sockets.size / 2);
  }

  /** Resolves at that number of connections. */
  async until(connections: number): Promise<void> {
    while (this.connections !== connections) await once(this.#server, 'left');
  }

  /** Cuts the connection of the next request with this text, when its response arrives. */
  cutAnswerTo(request: string): Promise<void> {
    return new Promise((resolve) => {
      this.#fatal = { request, cut: resolve };
    });
  }

  /** Cuts all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Stops passing on data on all connections, without closing them. */
  mute(): void {
    for (const socket of this.#sockets) this.#mute.add(socket);
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, upstream: Socket): void {
    joinSockets(this.#sockets, client, upstream, (other) => {
      other.destroySoon();
      this.#server.emit('left');
    });
    let cut: (() => void) | undefined;
    client.on('data', (chunk: Buffer) => {
      if (this.#fatal !== undefined && chunk.includes(this.#fatal.request)) {
        ({ cut } = this.#fatal);
        this.#fatal = undefined;
      }
      if (!this.#mute.has(client)) upstream.write(chunk);
    });
    upstream.on('data', (chunk: Buffer) => {
      if (cut !== undefined) {
        client.destroy();
        cut();
      } else if (!this.#mute.has(client)) client.write(chunk);
    });
  }
}
