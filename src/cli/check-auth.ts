import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { parseKeySet } from '../http/auth/jwks.ts';
import { makeKeyFile, parseKeyFile } from '../http/auth/key-file.ts';
import type { KeyRecord } from '../http/auth/key-records.ts';
import { authOptions } from './auth-options.ts';
import { type Finding, note, ok, problem } from './finding.ts';
import type { Settings } from './settings.ts';
import { openAccess } from './warnings.ts';

/** Milliseconds that the identity provider has to answer. */
const timeout = 3_000;

/** Whether callers can be authenticated: keys that are readable and not expired, a provider that answers. */
export async function checkAuth(settings: Settings): Promise<Finding[]> {
  const auth = authOptions(settings);
  if (auth === undefined) return [checkAccess(settings)];
  if (auth.keyFile !== undefined && !existsSync(auth.keyFile)) {
    return [problem(`${auth.keyFile}: there is no such file`, makeKeyFile(auth.keyFile))];
  }
  const findings: Finding[] = [];
  const records = [...(auth.keys ?? [])];
  if (auth.keyFile !== undefined) records.push(...parseKeyFile(await readFile(auth.keyFile, 'utf8')));
  if (auth.keyFile !== undefined || auth.keys !== undefined) findings.push(...checkKeys(records));
  if (auth.jwt !== undefined) findings.push(await checkProvider(auth.jwt.jwks));
  return findings;
}

function checkAccess(settings: Settings): Finding {
  const access = openAccess(settings);
  if (access === undefined) {
    return ok('no authentication; only this computer reaches the server');
  }
  // With --no-auth, the operator has said that a proxy authenticates.
  if (!settings.auth.required) return note(access);
  return problem(access, 'give --keys FILE, or --no-auth where a proxy in front authenticates');
}

function checkKeys(records: readonly KeyRecord[]): Finding[] {
  const now = new Date().toISOString();
  const expired = records.filter(({ expires_at }) => expires_at !== undefined && expires_at < now);
  if (records.length === expired.length) {
    return [problem('no API key is valid', 'make one with: rivulet keys new --principal NAME')];
  }
  const names = expired.map(({ id }) => id).join(', ');
  return [
    ok(`${records.length - expired.length} API keys`),
    ...(expired.length > 0 ? [note(`expired: ${names}`, 'remove them')] : []),
  ];
}

async function checkProvider(jwks: string): Promise<Finding> {
  try {
    const text = /^https?:/.test(jwks) ? await textOf(jwks) : await readFile(jwks, 'utf8');
    parseKeySet(text);
    return ok(`public keys of the token issuer: ${jwks}`);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return problem(`the public keys ${jwks} cannot be read: ${why}`, 'until they can, tokens are answered with 503');
  }
}

async function textOf(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(timeout) });
  if (!response.ok) throw new Error(`it answers ${response.status}`);
  return response.text();
}
