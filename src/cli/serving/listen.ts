import { networkInterfaces } from 'node:os';
import type { FastifyInstance, FastifyListenOptions } from 'fastify';
import { isLoopback } from '../addresses.ts';
import { UsageError } from '../exit-codes.ts';
import type { Settings } from '../settings/settings.ts';

/** Listens at the address of the options, or on the socket that systemd has opened there. */
export async function listen(app: FastifyInstance, { host, port }: Settings): Promise<string> {
  const fd = takeInheritedSocket(process.env);
  const listenTextResolver = (address: string): string => `the server listens at ${address}`;
  if (fd === undefined) return app.listen({ host, port, listenTextResolver });
  const socket: FastifyListenOptions & { readonly fd: number } = { fd, listenTextResolver };
  await app.listen(socket);
  const bound = app.server.address();
  // What the server does for its safety depends on `host`.
  if (bound === null || typeof bound === 'string' || (isLoopback(host) && !isLoopback(bound.address))) {
    const where = typeof bound === 'string' ? bound : bound?.address;
    throw new UsageError(
      `systemd opened the socket at ${where}, but host is ${host}; set HOST to the socket's address`,
    );
  }
  return `http://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`;
}

export function listenError(error: NodeJS.ErrnoException, { host, port }: Settings): Error {
  if (error.code === 'EADDRINUSE') {
    return new Error(`port ${port} of ${host} is in use; give another one with --port, or 0 for a free one`);
  }
  if (error.code === 'EACCES') {
    return new Error(`port ${port} needs the rights of an administrator; give one above 1023 with --port`);
  }
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') {
    return new Error(`${host} is no address of this computer; give one with --host, such as 127.0.0.1 or 0.0.0.0`);
  }
  return error;
}

/** Number of the first file that systemd hands over, after the standard ones. */
const firstSocket = 3;

/**
 * The socket that systemd listens on for this process (a socket unit); undefined without one. Removes the variables, so
 * that the programs that agents start do not take them for theirs.
 * @throws UsageError where there are several sockets
 */
export function takeInheritedSocket(env: NodeJS.ProcessEnv): number | undefined {
  const isForUs = env.LISTEN_PID === String(process.pid);
  const count = Number(env.LISTEN_FDS ?? 0);
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete env[name];
  if (!isForUs || count === 0) return undefined;
  if (count > 1) throw new UsageError(`the socket unit of systemd has ${count} addresses; a server listens on one`);
  return firstSocket;
}

/** The URLs of a server that listens at `url`: for an address that stands for all, those of each network. */
export function reachableUrls(host: string, url: string): string[] {
  const { port } = new URL(url);
  if (host !== '0.0.0.0' && host !== '::') return [url.replace('[::1]', 'localhost')];
  const addresses = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .filter(
      ({ internal, family, address }) => !internal && (family === 'IPv4' || host === '::') && !/^fe80:/i.test(address),
    )
    .map(({ address, family }) => `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`);
  return [`http://127.0.0.1:${port}`, ...addresses];
}
