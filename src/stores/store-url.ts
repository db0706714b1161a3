/** The nodes of a cluster by which the others are found, and how to sign in at each. */
export interface ClusterAddress {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly username?: string;
  readonly password?: string;
  readonly tls: boolean;
}

/** The parsed URL of a store, without the parameters that only Rivulet knows. */
export type StoreUrl =
  | { readonly kind: 'memory' }
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'redis'; readonly url: string; readonly prefix: string }
  | { readonly kind: 'redis-cluster'; readonly address: ClusterAddress; readonly prefix: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string };

type Kind = StoreUrl['kind'];

/** The kinds of stores: the form of their URL, and whether several processes can have one. */
const kinds: Readonly<Record<Kind, { readonly form: string; readonly isShared: boolean }>> = {
  memory: { form: 'memory:', isShared: false },
  sqlite: { form: 'sqlite:PATH', isShared: false },
  redis: { form: 'redis://HOST', isShared: true },
  'redis-cluster': { form: 'redis+cluster://HOST', isShared: true },
  postgres: { form: 'postgres://HOST/DATABASE', isShared: true },
};

/** The forms of URLs of all stores, and of those that several processes can have, for texts. */
export const storeForms = listed(Object.values(kinds).map(({ form }) => form));
export const sharedStoreForms = listed(Object.values(kinds).flatMap(({ form, isShared }) => (isShared ? [form] : [])));

/** Whether several processes can have the store of a URL. */
export function isSharedStore(text: string): boolean {
  const kind = readStoreUrl(text)?.kind;
  return kind !== undefined && kinds[kind].isShared;
}

/** Parses the URL of a store; undefined for an unknown scheme. @throws Error that names the problem */
export function readStoreUrl(text: string): StoreUrl | undefined {
  const [, scheme = '', rest = ''] = /^([a-z+]+):(.*)$/s.exec(text) ?? [];
  if (scheme === 'memory') return { kind: 'memory' };
  // Other programs write absolute paths as sqlite:///abs/path.
  if (scheme === 'sqlite' && rest !== '') return { kind: 'sqlite', path: rest.replace(/^\/\/(?=\/)/, '') };
  if (scheme === 'redis' || scheme === 'rediss') return redis(parsed(text));
  if (scheme === 'redis+cluster' || scheme === 'rediss+cluster') return redisCluster(text);
  if (scheme === 'postgres' || scheme === 'postgresql') return postgres(parsed(text));
  return undefined;
}

/** The message of a connection error. That of an AggregateError, for a host with several addresses, is empty. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}

function listed(forms: readonly string[]): string {
  return `${forms.slice(0, -1).join(', ')} or ${forms.at(-1)}`;
}

function redis(url: URL): StoreUrl {
  if (!/^\/?\d*$/.test(url.pathname))
    throw new Error(`its path has to be the number of a database; got "${url.pathname}"`);
  return { kind: 'redis', prefix: takePrefix(url), url: url.href };
}

/** The nodes are separated by commas, which no URL may have between hosts with ports: so each is parsed alone. */
function redisCluster(text: string): StoreUrl {
  const [, scheme = '', user = '', hosts = '', rest = ''] =
    /^(rediss?)\+cluster:\/\/([^/?#@]*@)?([^/?#]*)(.*)$/s.exec(text) ?? [];
  if (hosts === '') throw new Error('a // and a host have to follow the colon');
  const urls = hosts.split(',').map((host) => parsed(`${scheme}://${user}${host}${rest}`));
  const [first] = urls;
  if (first === undefined || !['', '/', '/0'].includes(first.pathname))
    throw new Error(`a cluster has one database, so its URL has no path; got "${first?.pathname}"`);
  const nodes = urls.map(({ hostname, port }) => ({
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port || 6379),
  }));
  const [username, password] = [first.username, first.password].map(decodeURIComponent);
  const address: ClusterAddress = {
    nodes,
    tls: scheme === 'rediss',
    ...(username && { username }),
    ...(password && { password }),
  };
  return { kind: 'redis-cluster', address, prefix: takePrefix(first) };
}

// Braces would end the hash tag of Redis Cluster.
const takePrefix = (url: URL): string =>
  takeParameter(url, 'prefix', /^[^{}\s]{1,100}$/, 'at most 100 characters without spaces or braces');

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
