import type { IncomingHttpHeaders } from 'node:http';

/**
 * The text after `Bearer`, or that of `X-API-Key`, which some clients send instead. `Authorization` may have another
 * scheme, for a proxy in front.
 */
export function tokenOf({ authorization = '', 'x-api-key': key }: IncomingHttpHeaders): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? (typeof key === 'string' ? key : undefined);
}
