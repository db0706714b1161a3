import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where a proxy listens, and to what it forwards; all at 127.0.0.1. */
export interface ProxyPlace {
  /** For HTTP/1.1 without TLS. */
  readonly port: number;
  /** For HTTP/2, or HTTP/1.1 with TLS where the proxy has no HTTP/2. */
  readonly tlsPort: number;
  /** The ports of the nodes. */
  readonly nodes: readonly [number, number];
  /** A folder for its files; removed when it stops. */
  readonly folder: string;
  /** Files in it: the certificate, the key, and both in one. */
  readonly cert: string;
  readonly key: string;
  readonly pem: string;
}

/** How a proxy is started in front of two nodes. */
export interface ProxyKind {
  readonly name: string;
  /** The Debian package. */
  readonly package: string;
  /** Prints the version. */
  readonly version: readonly [command: string, ...args: string[]];
  /** Whether it speaks HTTP/2 to clients. */
  readonly http2: boolean;
  /** Whether it listens without TLS as well. */
  readonly plain: boolean;
  /** The files of its configuration, by name. */
  readonly files: (place: ProxyPlace) => Readonly<Record<string, string>>;
  /** The command that runs it in the foreground. */
  readonly command: (place: ProxyPlace) => readonly [command: string, ...args: string[]];
  readonly env?: Readonly<Record<string, string>>;
}

export interface StartedProxy {
  readonly port: number;
  readonly tlsPort: number;
  /** The certificate of its TLS port. */
  readonly ca: string;
  stop(): Promise<void>;
}

/** The version of an installed proxy, such as `2.6.12`; undefined where there is none. */
export function versionOf({ version: [command, ...args] }: ProxyKind): string | undefined {
  const { stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (error !== undefined) return undefined;
  return /\d+\.\d+(\.\d+)?/.exec(`${stdout}${stderr}`)?.[0];
}

/** Starts a proxy. Resolves when it listens. @throws Error with what it printed */
export async function startProxy(
  kind: ProxyKind,
  ports: Pick<ProxyPlace, 'port' | 'tlsPort' | 'nodes'>,
): Promise<StartedProxy> {
  const folder = mkdtempSync(join(tmpdir(), `rivulet-${kind.package}-`));
  // Some proxies work as a user of their own.
  chmodSync(folder, 0o777);
  const place = { ...ports, folder, ...certificate(folder) };
  for (const [name, text] of Object.entries(kind.files(place))) writeFileSync(join(folder, name), text);
  const [command, ...args] = kind.command(place);
  const child = spawn(command, args, {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', HOME: folder, ...kind.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (printed = (printed + text).slice(-4_000)));
  const exited = once(child, 'exit');
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  const listens = kind.plain ? ports.port : ports.tlsPort;
  let ended = false;
  void exited.then(() => (ended = true));
  while (!(await accepts(listens))) {
    if (!ended) continue;
    const errors = join(folder, 'work/errors');
    const message = `${kind.name} did not start: ${printed}${existsSync(errors) ? readFileSync(errors, 'utf8') : ''}`;
    await stop();
    throw new Error(message);
  }
  return { ...ports, ca: place.certificate, stop };
}

/** Resolves to whether a port takes a connection, a moment later where it does not. */
const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => socket.destroy() && resolve(true));
    socket.once('error', () => setTimeout(resolve, 50, false));
  });

/** Makes a certificate for 127.0.0.1. */
function certificate(folder: string) {
  const cert = join(folder, 'cert.pem');
  const key = join(folder, 'key.pem');
  const pem = join(folder, 'both.pem');
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const made = spawnSync(
    'openssl',
    ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...subject, '-keyout', key, '-out', cert],
    { encoding: 'utf8' },
  );
  if (made.status !== 0) throw new Error(`openssl made no certificate: ${made.stderr}`);
  const texts = [cert, key].map((file) => readFileSync(file, 'utf8'));
  writeFileSync(pem, texts.join(''));
  for (const file of [key, pem]) chmodSync(file, 0o644);
  mkdirSync(join(folder, 'work'), { mode: 0o777 });
  chmodSync(join(folder, 'work'), 0o777);
  return { cert, key, pem, certificate: texts[0] ?? '' };
}
