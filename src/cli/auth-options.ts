import type { AuthOptions } from '../http/auth/credentials.ts';
import { parseKeyPairs } from '../http/auth/key-records.ts';
import { UsageError } from './exit-codes.ts';
import { isLoopback } from './greeting.ts';
import { rows, type Settings } from './settings.ts';

/** How the settings say that callers are authenticated; undefined where they do not. @throws UsageError */
export function authOptions({ auth }: Pick<Settings, 'auth'>): AuthOptions | undefined {
  const jwt = jwtOptions(auth.jwt);
  const { keyFile, apiKeys, ticketSecrets } = auth;
  if (jwt === undefined && keyFile === undefined && apiKeys === undefined) return undefined;
  if (!auth.required) {
    throw new UsageError(
      '--no-auth (auth.required) contradicts the keys or tokens of the settings; remove one of them',
    );
  }
  return {
    ...(apiKeys !== undefined && { keys: parseKeyPairs(apiKeys) }),
    ...(keyFile !== undefined && { keyFile }),
    ...(jwt !== undefined && { jwt }),
    ticketSecrets,
  };
}

function jwtOptions({ issuer, audience, jwks, tenantClaim, agentsClaim, claims, type }: Settings['auth']['jwt']) {
  const missing = Object.entries({ issuer, audience: audience[0], jwks }).flatMap(([name, value]) =>
    value ? [] : [name],
  );
  if (missing.length === 3) return undefined;
  if (issuer === undefined || jwks === undefined || missing.length > 0) {
    throw new UsageError(`auth.jwt: expected issuer, audience and jwks together; missing: ${missing.join(', ')}`);
  }
  return {
    issuer,
    audience,
    jwks,
    claims,
    ...(tenantClaim !== undefined && { tenantClaim }),
    ...(agentsClaim !== undefined && { agentsClaim }),
    ...(type !== undefined && { type }),
  };
}

/** Refuses to listen where other computers reach a server without authentication. @throws UsageError */
export function refuseOpenAccess({ host, auth }: Settings, options: AuthOptions | undefined): void {
  if (options !== undefined || !auth.required || isLoopback(host)) return;
  throw new UsageError(
    `other computers reach ${host}, and the server has no authentication: give --keys FILE (docs/authentication.md), ` +
      'or --no-auth where a proxy in front authenticates',
  );
}

/** Agents and their child processes do not get the secrets of the server. */
export function forgetSecrets(env: NodeJS.ProcessEnv): void {
  for (const { names } of rows()) if (names.secret !== undefined && names.env !== undefined) delete env[names.env];
}
