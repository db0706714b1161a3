import { connect, createServer, type Server, type Socket } from 'node:net';
import { listenOn } from './ports.ts';

/** A TCP proxy that cuts its first connections after a number of bytes, at any point of the data. */
export class CuttingProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #streaming = new Set<Socket>();
  url = '';
  connections = 0;
  cuts = 0;
  #down = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** The nth connection (from 1) is cut when it has carried `bytes[n - 1]` to the client; later ones are not. */
  static async open(target: string, bytes: readonly number[]): Promise<CuttingProxy> {
    const { hostname, port } = new URL(target);
    const proxy: CuttingProxy = new CuttingProxy(
      createServer((client) => {
        if (proxy.#down) return void client.destroy();
        proxy.connections += 1;
        const upstream = connect(Number(port), hostname);
        proxy.#join(client, upstream);
        proxy.#join(upstream, client);
        client.pipe(upstream);
        let left = bytes[proxy.connections - 1] ?? Number.POSITIVE_INFINITY;
        upstream.on('data', (chunk: Buffer) => {
          if (chunk.includes('text/event-stream'))
            for (const socket of [client, upstream]) proxy.#streaming.add(socket);
          client.write(chunk.subarray(0, left));
          left -= chunk.length;
          if (left > 0 || client.destroyed) return;
          proxy.cuts += 1;
          client.destroySoon();
          upstream.destroy();
        });
      }),
    );
    proxy.url = await listenOn(proxy.#server);
    return proxy;
  }

  /** Connections with a stream carry nothing any more, and stay open: as after a change of the network. */
  freeze(): void {
    for (const socket of this.#streaming) {
      socket.unpipe();
      socket.removeAllListeners('data');
      socket.pause();
    }
  }

  /** Cuts all connections, and new ones until `mend`. */
  break(): void {
    this.#down = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#down = false;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on('error', () => to.destroy());
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroySoon();
    });
  }
}
