/** What a principal may do. Agents may ask for scopes of their own: see `AgentOptions.scopes`. */
export const scopes = [
  'agents:read',
  'runs:read',
  'runs:write',
  'sessions:read',
  'sessions:write',
  'metrics:read',
  'admin',
] as const;
export type Scope = (typeof scopes)[number];

/**
 * The caller of a request, once it is authenticated. It is stored with the run as JSON, because another process may
 * execute the run. So it holds no token, and of a token's claims only those that the configuration names.
 */
export interface Principal {
  /** Unique within its kind: the key's `principal`, or the issuer and the subject of a JWT. */
  readonly id: string;
  /** How it was authenticated; `anonymous` where authentication is off. */
  readonly kind: 'key' | 'jwt' | 'custom' | 'anonymous';
  /** Principals of one tenant own their runs and sessions together. */
  readonly tenant?: string;
  /** Of `Scope`, and those that agents ask for. `admin` includes all, and sees what others own. */
  readonly scopes: readonly string[];
  /** Names of the agents that it may see and run, with their runs; `*` stands for any characters. Default: all. */
  readonly agents?: readonly string[];
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** The caller where authentication is off, and the server itself: it owns nothing, and sees everything. */
export const operator: Principal = { id: 'operator', kind: 'anonymous', scopes: ['admin'] };

/** A caller without credentials, where authentication is on: it sees what is public. */
export const visitor: Principal = { id: 'visitor', kind: 'anonymous', scopes: [] };

/** What a principal owns is stored under this text, which has no spaces; null where authentication is off. */
export function ownerOf({ id, kind, tenant }: Principal): string | null {
  if (tenant !== undefined) return `tenant:${encodeURIComponent(tenant)}`;
  return kind === 'anonymous' ? null : `${kind}:${encodeURIComponent(id)}`;
}

/** Characters of an owner: databases limit what they index. */
const maxOwner = 1_000;

/** Whether the names of a principal make an owner that every store takes. Half of a surrogate pair has no encoding. */
export function canOwn(principal: Principal): boolean {
  try {
    return (ownerOf(principal)?.length ?? 0) <= maxOwner;
  } catch {
    return false;
  }
}

export const hasScope = ({ scopes: has }: Principal, scope: string): boolean =>
  has.includes(scope) || has.includes('admin');

/** Whether a principal may see what an owner has. What was made without authentication is for `admin` only. */
export const mayAccess = (principal: Principal, owner: string | null): boolean =>
  hasScope(principal, 'admin') || (owner !== null && owner === ownerOf(principal));

/** Whether a principal may see a run: what its owner has, and its agent. */
export const maySeeRun = (
  principal: Principal,
  { owner, agent_name }: { readonly owner: string | null; readonly agent_name: string },
): boolean => mayAccess(principal, owner) && mayUseAgent(principal, agent_name);

/** Whether a principal may see and run an agent. */
export function mayUseAgent({ agents }: Principal, name: string): boolean {
  return agents === undefined || agents.some((pattern) => matches(pattern, name));
}

// Compared piece by piece: a regular expression of a pattern with many `*` could take exponential time.
function matches(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return pattern === name;
  const last = rest.pop() ?? '';
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const piece of rest) {
    const found = name.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}

/**
 * The key under which a session is stored. Clients choose the ids of sessions, so two owners may use the same one. Ids
 * and owners have no spaces. Without an owner, the key is the id.
 */
export const sessionKey = (owner: string | null, session_id: string): string =>
  owner === null ? session_id : `${owner} ${session_id}`;

export const sessionIdOf = (key: string): string => key.slice(key.indexOf(' ') + 1);

/** The owner of a session, or of a resource, by the session's key. */
export function sessionOwnerOf(key: string): string | null {
  const end = key.indexOf(' ');
  return end < 0 ? null : key.slice(0, end);
}
