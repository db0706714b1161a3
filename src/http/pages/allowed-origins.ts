import type { FastifyInstance, FastifyRequest } from 'fastify';
import { fail } from '../../core/errors.ts';
import { publicUrlProblem } from '../server-url.ts';

export interface NameOptions {
  /** The URL under which clients reach the server. Its host is one of the server's names. */
  readonly publicUrl?: string;
  /** Further host names of the server, without a port; `*` for every name. Default none. */
  readonly allowedHosts?: readonly string[];
  /** Origins of web pages that may call the server, such as `https://app.example.com`; `*` for all. Default none. */
  readonly allowedOrigins?: readonly string[];
}

const hostHeader = /^(\[[\da-f:.]+\]|[^\s:[\]@/?#\\]+)(?::\d{0,5})?$/;
const loopback = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

/**
 * Refuses requests that are not sent to one of the server's own names, or that come from pages of other origins.
 * Without this check, any web page could use a server on the user's machine: the page's name may resolve to 127.0.0.1
 * (DNS rebinding), and browsers send some requests to other sites without a preflight. Programs other than browsers
 * send no `Origin`. The check runs before the body is read.
 * @throws Error that names an option which is no URL, host or origin
 */
export function refuseForeign(app: FastifyInstance, options: NameOptions): void {
  const publicUrl = publicUrlOf(options);
  const hosts = new Set((options.allowedHosts ?? []).map((text) => hostOption(text, 'allowedHosts: ')));
  if (publicUrl !== undefined) hosts.add(publicUrl.hostname.toLowerCase());
  const origins = new Set((options.allowedOrigins ?? []).map((text) => originOption(text, 'allowedOrigins: ')));
  if (publicUrl !== undefined) origins.add(publicUrl.origin);

  /** @throws RivuletError `host_refused` */
  const checkName = (host: string, { raw }: FastifyRequest): void => {
    const name = nameIn(host);
    if (hosts.has('*') || (name !== undefined && (loopback.test(name) || hosts.has(name)))) return;
    if (name === undefined || name !== addressOf(raw.socket.localAddress)) throw fail('host_refused', host);
  };
  app.addHook('onRequest', (request, _reply, next) => {
    const host = hostOf(request);
    if (host !== undefined) checkName(host, request);
    // Behind a trusted proxy, `request.host` is `X-Forwarded-Host`, which names the server in cards and manifests.
    const named = request.host.toLowerCase();
    if (named !== '' && named !== host) checkName(named, request);
    const { origin, 'sec-fetch-site': site } = request.headers;
    if (origin !== undefined) {
      if (!isOwnPage(origin, host, origins)) throw fail('origin_refused', origin);
    } else if (site === 'cross-site' && !['GET', 'HEAD'].includes(request.method)) {
      throw fail('origin_refused', 'another site');
    }
    next();
  });
}

/** The path under which clients reach the server, without a slash at its end; undefined without a public URL. */
export const publicPath = (options: NameOptions): string | undefined =>
  publicUrlOf(options)?.pathname.replace(/\/+$/, '');

function publicUrlOf({ publicUrl }: NameOptions): URL | undefined {
  if (publicUrl === undefined) return undefined;
  const problem = publicUrlProblem(publicUrl);
  if (problem !== undefined) throw new Error(`publicUrl: ${problem}`);
  return new URL(publicUrl);
}

/** The Host header, in lower case; undefined for HTTP/1.0, where it is optional. @throws RivuletError `bad_request` */
function hostOf({ raw }: FastifyRequest): string | undefined {
  let count = 0;
  for (let at = 0; at < raw.rawHeaders.length; at += 2) {
    const name = raw.rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  const { host } = raw.headers;
  if (count > 1) throw fail('bad_request', 'The request has more than one Host header; send one.');
  // Injected requests have no raw headers. HTTP/2 has `:authority` instead of Host.
  if (host === undefined && raw.httpVersion === '1.1') throw fail('bad_request', 'The request has no Host header.');
  return host?.toLowerCase();
}

/** The name in a Host header; undefined where it is not one. */
const nameIn = (host: string): string | undefined => hostHeader.exec(host)?.[1]?.replace(/\.$/, '');

/** The local address of a connection, in the form of a Host header. */
function addressOf(address: string | undefined): string | undefined {
  const plain = address?.replace(/^::ffff:(?=[\d.]+$)/, '').replace(/%.*$/, '');
  return plain?.includes(':') ? `[${plain}]` : plain;
}

// Compares only the host with the Host header: behind a proxy that terminates TLS, the server does not know the scheme.
function isOwnPage(origin: string, host: string | undefined, origins: ReadonlySet<string>): boolean {
  if (origins.has('*') || origins.has(origin)) return true;
  if (host === undefined || !URL.canParse(origin)) return false;
  const page = new URL(origin);
  const asked = `${page.protocol}//${host}`;
  return page.host !== '' && URL.canParse(asked) && new URL(asked).host === page.host;
}

/** A host name of the options, as requests are compared with it. @throws Error that begins with `prefix` */
export function hostOption(text: string, prefix = ''): string {
  const name = text.trim().toLowerCase();
  const bare = name.includes(':') && !name.startsWith('[') ? undefined : hostHeader.exec(name)?.[1];
  if (bare === undefined || bare !== name) {
    throw new Error(`${prefix}expected a host name without a port, such as agents.example.com; got "${text}"`);
  }
  return name;
}

/** An origin of the options, as requests are compared with it. @throws Error that begins with `prefix` */
export function originOption(text: string, prefix = ''): string {
  if (text.trim() === '*') return '*';
  const { origin, pathname, search, hash } = URL.canParse(text) ? new URL(text) : new URL('about:blank');
  // A path would promise a limit that browsers do not have: pages of one origin are not told apart.
  if (origin !== 'null' && pathname === '/' && search === '' && hash === '') return origin;
  throw new Error(`${prefix}expected an origin such as https://app.example.com; got "${text}"`);
}

/**
 * Lets pages of the allowed origins read answers: adds the headers of CORS, and answers preflights. Without origins, it
 * adds nothing. Without credentials: callers send keys in headers, and cookies are for pages of the same site.
 */
export async function answerOrigins(app: FastifyInstance, allowedOrigins: readonly string[] = []): Promise<void> {
  if (allowedOrigins.length === 0) return;
  const { default: cors } = await import('@fastify/cors');
  await app.register(cors, {
    origin: allowedOrigins.includes('*') ? '*' : allowedOrigins.map((text) => new URL(text).origin),
    methods: ['GET', 'HEAD', 'POST', 'DELETE'],
    // Requests may have any header: the clients of each protocol send their own, as `X-Stainless-*`.
    // Answers may be read whole: they carry no credentials.
    exposedHeaders: ['*'],
    maxAge: 600,
    strictPreflight: false,
  });
}
