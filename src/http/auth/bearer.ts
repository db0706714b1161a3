import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { scopes } from '../../core/principal.ts';
import type { ServerUrl } from '../server-url.ts';

/**
 * The text after `Bearer`, or that of `X-API-Key`, which some clients send instead. `Authorization` may have another
 * scheme, for a proxy in front.
 */
export function tokenOf({ authorization = '', 'x-api-key': key }: IncomingHttpHeaders): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? (typeof key === 'string' ? key : undefined);
}

const metadataPath = '/.well-known/oauth-protected-resource';

export interface Resource {
  readonly url: ServerUrl;
  /** The issuer of the tokens that the server accepts; undefined where it accepts none. */
  readonly issuer: string | undefined;
}

interface Problem {
  readonly error?: 'invalid_token' | 'insufficient_scope';
  readonly scope?: string | undefined;
}

/** The header `WWW-Authenticate` of RFC 6750, with the address of the metadata of RFC 9728. */
export function challenge(request: FastifyRequest, resource: Resource, { error, scope }: Problem): string {
  const values = {
    realm: 'rivulet',
    ...(error !== undefined && { error }),
    ...(scope !== undefined && { scope }),
    ...(resource.issuer !== undefined && { resource_metadata: `${resource.url(request)}${metadataPath}` }),
  };
  const parameters = Object.entries(values).map(([name, value]) => `${name}="${value}"`);
  return `Bearer ${parameters.join(', ')}`;
}

/**
 * Serves the metadata by which clients find the issuer of tokens. A client that calls only `/mcp` looks for it at
 * `/.well-known/oauth-protected-resource/mcp`: it is the same for all paths of the server.
 */
export function serveMetadata(app: FastifyInstance, resource: Resource): void {
  for (const path of [metadataPath, `${metadataPath}/*`]) {
    app.get(path, { config: { open: true }, schema: { hide: true } }, async (request, reply) => {
      reply.header('Cache-Control', 'public, max-age=300');
      return {
        resource: resource.url(request),
        authorization_servers: [resource.issuer],
        scopes_supported: scopes,
        bearer_methods_supported: ['header'],
        resource_name: 'Rivulet',
      };
    });
  }
}
