import { UsageError } from './exit-codes.ts';

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
