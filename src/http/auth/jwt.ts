import { hash } from 'node:crypto';
import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { RivuletError } from '../../core/errors.ts';
import { canOwn, type Principal } from '../../core/principal.ts';
import { type FindKey, parseKeySet, RemoteKeySet } from './jwks.ts';
import { WatchedFile } from './watched-file.ts';

/** Only asymmetric ones: with a symmetric one, all holders of the public key could sign tokens. */
const algorithms = ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519'] as const;

export interface JwtOptions {
  /** The only accepted issuer (`iss`). */
  readonly issuer: string;
  /** Of a token's audiences (`aud`), at least one must be among these. */
  readonly audience: string | readonly string[];
  /** The issuer's public keys as a JWKS: an http(s) URL, or the path of a file. */
  readonly jwks: string;
  /** Default: ES256, ES384, RS256, PS256, EdDSA and Ed25519; others are refused. */
  readonly algorithms?: readonly (typeof algorithms)[number][];
  /** The required `typ` of a token's header, such as `at+jwt`. Default: not checked. */
  readonly type?: string;
  /** The claim that names the tenant, such as `org_id`. A token without it is refused. Default: no tenants. */
  readonly tenantClaim?: string;
  /** The claim that lists the agents which the principal may use. Without it, a token allows none. Default: all. */
  readonly agentsClaim?: string;
  /** Claims that agents find in `context.principal.claims`. Default none. */
  readonly claims?: readonly string[];
}

export interface JwtHooks {
  readonly onProblem: (error: Error) => void;
  /** For tests. */
  readonly findKey?: FindKey;
}

const clockTolerance = 30; // seconds
const maxCached = 10_000;
/** Milliseconds for which a token is not verified again; a withdrawn key works for as long. */
const maxCacheTime = 60_000;
/** Longer tokens are refused without a look. Node's limit of all headers is 16 kB. */
const maxTokenLength = 8_192;

interface Known {
  readonly principal: Principal;
  /** Epoch, milliseconds. */
  readonly freshUntil: number;
}

/** Verifies the tokens of one issuer. */
export class JwtVerifier {
  readonly #options: JwtOptions;
  readonly #findKey: FindKey;
  readonly #file: Pick<WatchedFile<unknown>, 'close'> | undefined;
  readonly #cache = new LRUCache<string, Known>({ max: maxCached });

  /** @throws Error that names a wrong option, or the file that cannot be used */
  constructor(options: JwtOptions, { onProblem, findKey }: JwtHooks) {
    checkOptions(options);
    this.#options = options;
    const onChange = (): void => this.#cache.clear();
    if (findKey !== undefined) this.#findKey = findKey;
    else if (isUrl(options.jwks)) this.#findKey = new RemoteKeySet({ url: options.jwks, onChange, onProblem }).find;
    else {
      const file = new WatchedFile({ path: options.jwks, parse: parseKeySet, onChange, onProblem });
      this.#findKey = (header, token) => file.value(header, token);
      this.#file = file;
    }
  }

  /** The principal of a token that was verified a moment ago. */
  known(token: string): Principal | undefined {
    const known = this.#cache.get(hashOf(token));
    return known !== undefined && Date.now() < known.freshUntil ? known.principal : undefined;
  }

  /** Until when a token is not verified again, in milliseconds since the epoch, and at most to its `exp`; 0 for now. */
  freshUntil(token: string): number {
    return this.#cache.get(hashOf(token))?.freshUntil ?? 0;
  }

  /** Whether a token was good before, so that its caller is not one that tries tokens. */
  wasKnown(token: string): boolean {
    return this.#cache.has(hashOf(token));
  }

  /**
   * The principal of a token; undefined where the token is refused.
   * @throws RivuletError `auth_unavailable` where the issuer's keys cannot be read
   */
  async verify(token: string): Promise<Principal | undefined> {
    if (token.length > maxTokenLength) return undefined;
    try {
      const payload = await this.#payloadOf(token);
      const found = this.#principalOf(payload);
      const principal = found !== undefined && canOwn(found) ? found : undefined;
      const ttl = Math.floor((payload.exp ?? 0) * 1_000) - Date.now();
      if (principal !== undefined && ttl > 0) {
        const freshUntil = Date.now() + Math.min(ttl, maxCacheTime);
        this.#cache.set(hashOf(token), { principal, freshUntil }, { ttl });
      }
      return principal;
    } catch (error) {
      // The key set's own error; all others are about the token.
      if (error instanceof RivuletError) throw error;
      if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof SyntaxError) {
        return undefined;
      }
      throw error;
    }
  }

  /** Tries each key that fits: while an issuer changes its keys, it has two, which its tokens need not name. */
  async #payloadOf(token: string): Promise<JWTPayload> {
    const { issuer, audience, type } = this.#options;
    const options: JWTVerifyOptions = {
      algorithms: [...(this.#options.algorithms ?? algorithms)],
      issuer,
      audience: typeof audience === 'string' ? audience : [...audience],
      clockTolerance,
      requiredClaims: ['exp', 'sub'],
      typ: type,
    };
    try {
      return (await jwtVerify(token, this.#findKey, options)).payload;
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      for await (const key of error) {
        try {
          return (await jwtVerify(token, key, options)).payload;
        } catch (refusal) {
          if (!(refusal instanceof errors.JWSSignatureVerificationFailed)) throw refusal;
        }
      }
      throw error;
    }
  }

  close(): void {
    this.#file?.close();
    this.#cache.clear();
  }

  #principalOf(payload: JWTPayload): Principal | undefined {
    const { issuer, tenantClaim, agentsClaim, claims = [] } = this.#options;
    const { sub } = payload;
    if (typeof sub !== 'string' || sub === '') return undefined;
    const tenant = tenantClaim === undefined ? undefined : payload[tenantClaim];
    // A token without its tenant must not share with others that have none.
    if (tenantClaim !== undefined && (typeof tenant !== 'string' || tenant === '')) return undefined;
    const named = claims.filter((name) => payload[name] !== undefined).map((name) => [name, payload[name]]);
    return {
      // A subject is unique only within its issuer, whose URL has no spaces.
      id: `${issuer} ${sub}`,
      kind: 'jwt',
      ...(typeof tenant === 'string' && { tenant }),
      scopes: [...textsOf(payload.scope), ...textsOf(payload.scp)],
      ...(agentsClaim !== undefined && { agents: textsOf(payload[agentsClaim]) }),
      ...(named.length > 0 && { claims: Object.fromEntries(named) }),
    };
  }
}

/** The texts of a claim that is a list, or a text with spaces between. */
function textsOf(claim: unknown): string[] {
  if (typeof claim === 'string') return claim.split(' ').filter(Boolean);
  return Array.isArray(claim) ? claim.filter((item) => typeof item === 'string') : [];
}

// The token itself would keep up to 8 kB for each entry, and stay in the memory of the process.
const hashOf = (token: string): string => hash('sha256', token, 'base64');

const isUrl = (text: string): boolean => /^https?:\/\//i.test(text);

function checkOptions({ issuer, audience, algorithms: chosen = algorithms }: JwtOptions): void {
  if (!/^\S+$/.test(issuer)) throw new Error(`auth.jwt.issuer: expected a URL; got "${issuer}"`);
  const all = [audience].flat();
  // jose would accept every audience.
  if (all.length === 0 || all.some((one) => typeof one !== 'string' || one === '')) {
    throw new Error('auth.jwt.audience: expected the name of this server in the tokens; got none');
  }
  const other = chosen.find((name) => !algorithms.includes(name));
  if (other === undefined && chosen.length > 0) return;
  throw new Error(`auth.jwt.algorithms: expected some of ${algorithms.join(', ')}; got "${other ?? ''}"`);
}
