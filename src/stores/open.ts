import type { Store } from '../core/store.ts';

const kinds = 'memory:, sqlite:PATH, redis://HOST or postgres://HOST/DATABASE';

/**
 * Opens the store that a URL names, and imports only what it opens:
 * `memory:`; `sqlite:PATH` (a relative path is relative to here);
 * `redis://USER:PASSWORD@HOST:PORT/NUMBER?prefix=rivulet`, with `rediss://` for TLS;
 * `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=rivulet`.
 * @throws Error that says what is wrong with the URL, or why it cannot be opened
 */
export async function openStore(url: string): Promise<Store> {
  const [, scheme = '', rest = ''] = /^([a-z]+):(.*)$/s.exec(url) ?? [];
  if (scheme === 'memory') {
    const { MemoryStore } = await import('./memory.ts');
    return new MemoryStore();
  }
  if (scheme === 'sqlite' && rest !== '') {
    const { SqliteStore } = await import('./sqlite.ts');
    // sqlite:///abs/path is what people know from elsewhere.
    return new SqliteStore(rest.replace(/^\/\/(?=\/)/, ''));
  }
  if (scheme === 'redis' || scheme === 'rediss') return opening(url, openRedis);
  if (scheme === 'postgres' || scheme === 'postgresql') return opening(url, openPostgres);
  throw new Error(`there is no store "${storeName(url)}"; use ${kinds}`);
}

/** A store's URL as it may be shown: without its password. */
export function storeName(url: string): string {
  return url.replace(/^([a-z]+:\/\/[^:@]*):.*@/s, '$1:***@').replace(/([?&]password=)[^&#]*/, '$1***');
}

async function openRedis(url: URL): Promise<Store> {
  if (!/^\/?\d*$/.test(url.pathname)) throw new Error(`its path is the number of a database; got "${url.pathname}"`);
  // Braces would end the hash tag.
  const prefix = taken(url, 'prefix', /^[^{}\s]{1,100}$/, 'at most 100 characters without spaces or braces');
  const { RedisStore } = await import('./redis.ts');
  return RedisStore.open(url.href, prefix);
}

async function openPostgres(url: URL): Promise<Store> {
  const schema = taken(url, 'schema', /^[a-z_][a-z0-9_]{0,62}$/, 'at most 63 small letters, digits and underscores');
  const { PostgresStore } = await import('./postgres.ts');
  return PostgresStore.open(url.href, schema);
}

/** A parameter of ours, which the client would not know. */
function taken(url: URL, name: string, pattern: RegExp, rule: string): string {
  const value = url.searchParams.get(name) ?? 'rivulet';
  if (!pattern.test(value)) throw new Error(`its ${name} has to be ${rule}; got "${value}"`);
  url.searchParams.delete(name);
  return value;
}

async function opening(text: string, open: (url: URL) => Promise<Store>): Promise<Store> {
  try {
    if (!/^[a-z]+:\/\//.test(text)) throw new Error('a // has to follow the colon');
    if (!URL.canParse(text)) throw new Error('it is no URL; write special characters of the password as %XX');
    return await open(new URL(text));
  } catch (error) {
    throw new Error(`the store ${storeName(text)} cannot be opened: ${reason(error)}`, { cause: error });
  }
}

/** Where a name has two addresses and neither answers, the error itself says nothing. */
function reason(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reason).join(', ');
  return error instanceof Error ? error.message : String(error);
}
