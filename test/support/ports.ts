import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

/** Lets a server listen on a free port of this computer. Returns its URL. */
export async function listenOn(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The URL of a server that has stopped: connections to it are refused. */
export async function stoppedUrl(): Promise<string> {
  const server = createServer();
  const url = await listenOn(server);
  await once(server.close(), 'close');
  return url;
}

/**
 * A free port below the range of outgoing connections: while its server is down, no other process gets the port, not
 * even a client that tries to connect to it.
 */
export async function steadyPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer();
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
