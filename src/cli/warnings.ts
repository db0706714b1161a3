import { resolve } from 'node:path';
import { readStoreUrl } from '../core/store-url.ts';
import { authOptions } from './auth-options.ts';
import { isLoopback } from './greeting.ts';
import type { Settings } from './settings.ts';

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
  const isShared = ['redis', 'postgres'].includes(readStoreUrl(store)?.kind ?? '');
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
    [!worker && !isShared, 'worker is false, but no other process can share this store: no run is executed'],
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
