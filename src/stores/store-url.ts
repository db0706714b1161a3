/** The parsed URL of a store, without the parameters that only Rivulet knows. */
export type StoreUrl =
  | { readonly kind: 'memory' }
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'redis'; readonly url: string; readonly prefix: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string };

/** Parses the URL of a store; undefined for an unknown scheme. @throws Error that names the problem */
export function readStoreUrl(text: string): StoreUrl | undefined {
  const [, scheme = '', rest = ''] = /^([a-z]+):(.*)$/s.exec(text) ?? [];
  if (scheme === 'memory') return { kind: 'memory' };
  // Other programs write absolute paths as sqlite:///abs/path.
  if (scheme === 'sqlite' && rest !== '') return { kind: 'sqlite', path: rest.replace(/^\/\/(?=\/)/, '') };
  if (scheme === 'redis' || scheme === 'rediss') return redis(parsed(text));
  if (scheme === 'postgres' || scheme === 'postgresql') return postgres(parsed(text));
  return undefined;
}

/** The message of a connection error. That of an AggregateError, for a host with several addresses, is empty. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}

function redis(url: URL): StoreUrl {
  if (!/^\/?\d*$/.test(url.pathname))
    throw new Error(`its path has to be the number of a database; got "${url.pathname}"`);
  // Braces would end the hash tag of Redis Cluster.
  const prefix = takeParameter(url, 'prefix', /^[^{}\s]{1,100}$/, 'at most 100 characters without spaces or braces');
  return { kind: 'redis', url: url.href, prefix };
}

function postgres(url: URL): StoreUrl {
  const schema = takeParameter(
    url,
    'schema',
    /^[a-z_][a-z0-9_]{0,62}$/,
    'at most 63 small letters, digits and underscores',
  );
  return { kind: 'postgres', url: url.href, schema };
}

function parsed(text: string): URL {
  if (!/^[a-z]+:\/\//.test(text)) throw new Error('a // has to follow the colon');
  if (!URL.canParse(text)) throw new Error('it is not a URL; write special characters of the password as %XX');
  return new URL(text);
}

/** Takes a parameter of Rivulet out of the URL, because the store's client does not know it. */
function takeParameter(url: URL, name: string, pattern: RegExp, rule: string): string {
  const value = url.searchParams.get(name) ?? 'rivulet';
  if (!pattern.test(value)) throw new Error(`its ${name} has to be ${rule}; got "${value}"`);
  url.searchParams.delete(name);
  return value;
}
