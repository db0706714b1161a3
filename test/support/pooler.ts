import { connect, createServer, type Server, type Socket } from 'node:net';
import { joinSockets } from './joined-sockets.ts';
import { listenOn } from './ports.ts';

/** A proxy in front of PostgreSQL that does what poolers do: it leaves out a part of the protocol. */
export class Pooler {
  /** The URL of the server, by way of the proxy. */
  readonly url: string;
  /** Drops the parameter `options` of new connections. */
  dropsOptions = false;
  /** Drops notifications, also on connections that are open. */
  dropsNotifications = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  static async open(target: string): Promise<Pooler> {
    const { hostname, port } = new URL(target);
    const server = createServer((client) => pooler.#join(client, connect(Number(port || 5432), hostname)));
    const url = new URL(target);
    url.host = new URL(await listenOn(server)).host;
    const pooler: Pooler = new Pooler(server, url.href);
    return pooler;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, upstream: Socket): void {
    joinSockets(this.#sockets, client, upstream);
    // The first message has no type: its length, the version of the protocol, and parameters.
    let pending = Buffer.alloc(0);
    let isStarted = false;
    client.on('data', (chunk: Buffer) => {
      if (isStarted) return void upstream.write(chunk);
      pending = Buffer.concat([pending, chunk]);
      if (pending.length < 4 || pending.length < pending.readUInt32BE(0)) return;
      isStarted = true;
      upstream.write(this.dropsOptions ? withoutOptions(pending) : pending);
    });
    // Each message of the server has a type, and then its length.
    let unread = Buffer.alloc(0);
    upstream.on('data', (chunk: Buffer) => {
      unread = Buffer.concat([unread, chunk]);
      while (unread.length >= 5 && unread.length > unread.readUInt32BE(1)) {
        const end = unread.readUInt32BE(1) + 1;
        const isNotification = unread[0] === 'A'.charCodeAt(0);
        if (!(isNotification && this.dropsNotifications)) client.write(unread.subarray(0, end));
        unread = unread.subarray(end);
      }
    });
  }
}

function withoutOptions(startup: Buffer): Buffer {
  const texts = startup.subarray(8).toString().split('\0');
  const at = texts.findIndex((text, index) => index % 2 === 0 && text === 'options');
  if (at >= 0) texts.splice(at, 2);
  const parameters = Buffer.from(texts.join('\0'));
  const head = Buffer.from(startup.subarray(0, 8));
  head.writeUInt32BE(8 + parameters.length, 0);
  return Buffer.concat([head, parameters]);
}
