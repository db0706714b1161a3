import { resolve } from 'node:path';
import type { AuthOptions } from '../../http/auth/credentials.ts';
import { parseKeyPairs } from '../../http/auth/key-records.ts';
import { isSharedStore, readStoreUrl } from '../../stores/store-url.ts';
import { isLoopback } from '../addresses.ts';
import { UsageError } from '../exit-codes.ts';
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
  return { ...(apiKeys !== undefined && { keys: parseKeyPairs(apiKeys) }), keyFile, jwt, ticketSecrets };
}

function jwtOptions({ issuer, audience, jwks, tenantClaim, agentsClaim, claims, type }: Settings['auth']['jwt']) {
  const missing = Object.entries({ issuer, audience: audience[0], jwks }).flatMap(([name, value]) =>
    value ? [] : [name],
  );
  if (missing.length === 3) return undefined;
  if (issuer === undefined || jwks === undefined || missing.length > 0) {
    throw new UsageError(`auth.jwt: expected issuer, audience and jwks together; missing: ${missing.join(', ')}`);
  }
  return { issuer, audience, jwks, claims, tenantClaim, agentsClaim, type };
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

/** What makes the server open to others; undefined where nothing does. */
export const openAccess = (settings: Settings): string | undefined =>
  isLoopback(settings.host) || authOptions(settings) !== undefined
    ? undefined
    : `${settings.host} has no authentication: every computer that reaches it runs agents and reads runs`;

/** What an operator should know about settings that are valid, a line each. */
export function warningsOf(settings: Settings): string[] {
  const { store, host, publicUrl, allowHosts, allowOrigins, trustProxy, worker } = settings;
  const access = openAccess(settings);
  const isPublic = !isLoopback(host);
  const findings: [boolean, string][] = [
    [access !== undefined, access ?? ''],
    [
      isPublic && publicUrl === undefined,
      'publicUrl is not set: sessions have URLs with the address that the server listens on',
    ],
    [
      // The server itself has no TLS.
      authOptions(settings) !== undefined && /^https:/i.test(publicUrl ?? '') && trustProxy.length === 0,
      'publicUrl is https, so a proxy is in front, but trustProxy is not set: all clients count as one address, and ' +
        'wrong credentials of one refuse new tokens of all',
    ],
    [store === 'memory:', 'the store is memory: runs and sessions are lost when the server ends'],
    [
      !worker && !isSharedStore(store),
      'worker is false, but no other process can share this store: no run is executed',
    ],
    [
      allowHosts.includes('*'),
      'allowHosts has *: a web page can reach the server under a name of its own (DNS rebinding)',
    ],
    [allowOrigins.includes('*'), 'allowOrigins has *: pages of every origin may call the server'],
  ];
  return findings.flatMap(([isFound, text]) => (isFound ? [text] : []));
}

/** The file of a store in SQLite; undefined for any other store. */
export function storeFile(store: string): string | undefined {
  const url = readStoreUrl(store);
  return url?.kind === 'sqlite' && url.path !== ':memory:' ? resolve(url.path) : undefined;
}
