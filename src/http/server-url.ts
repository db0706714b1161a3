import type { FastifyRequest } from 'fastify';

/** The URL of the server, as the client of a request reaches it; without a slash at its end. */
export type ServerUrl = (request: FastifyRequest) => string;

interface ServerName {
  /** The URL under which clients reach the server. Default: the one that the request used. */
  readonly publicUrl: string | undefined;
  readonly prefix: string;
}

/** A Host header may have quotes where every host is allowed. */
export const serverUrl =
  ({ publicUrl, prefix }: ServerName): ServerUrl =>
  ({ protocol, host }) =>
    (publicUrl ?? `${protocol}://${host}${prefix}`).replace(/["\\\s]/g, '').replace(/\/+$/, '');
