import type { FastifyRequest } from 'fastify';

/** The URL of the server, as the client of a request reaches it; without a slash at its end. */
export type ServerUrl = (request: FastifyRequest) => string;

interface ServerName {
  /** The URL under which clients reach the server. Default: the one that the request used. */
  readonly publicUrl: string | undefined;
  readonly prefix: string;
}

/** A Host header may have quotes where every host is allowed. A trusted proxy passes on what its client says of the scheme. */
export const serverUrl =
  ({ publicUrl, prefix }: ServerName): ServerUrl =>
  ({ protocol, host }) =>
    (publicUrl ?? `${protocol === 'https' ? 'https' : 'http'}://${host}${prefix}`)
      .replace(/["\\\s]/g, '')
      .replace(/\/+$/, '');

/** Why a text is no public URL; undefined where it is one. Paths are appended to it. */
export function publicUrlProblem(text: string): string | undefined {
  const expected = 'expected an http(s) URL such as https://agents.example.com';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return `${expected}; got "${text}"`;
  const { href, username, password } = url;
  const extra = [
    /^[^#]*\?/.test(href) && 'a query',
    href.includes('#') && 'a fragment',
    (username !== '' || password !== '') && 'a user or password',
  ].filter((part) => part !== false);
  return extra.length === 0 ? undefined : `${expected}; got one with ${extra.join(' and ')}`;
}
