import type { IncomingHttpHeaders } from 'node:http';
import { fail, RivuletError } from '../../core/errors.ts';
import { canOwn, ownerOf, type Principal } from '../../core/principal.ts';
import { TooLate, within } from '../../core/timing.ts';
import { tokenOf } from './bearer.ts';
import { type JwtOptions, JwtVerifier } from './jwt.ts';
import { makeKeyFile, parseKeyFile } from './key-file.ts';
import { checkKeyRecords, type KeyRecord } from './key-records.ts';
import { KeyRing } from './key-ring.ts';
import { WatchedFile } from './watched-file.ts';

/** A request, as the app's own scheme sees it: without the body, which is not read yet. */
export interface AuthRequest {
  readonly headers: IncomingHttpHeaders;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly ip: string;
}

/**
 * The app's own scheme: returns the principal of a request, and undefined for a request that it refuses. It is asked where a
 * request has neither an API key nor a JWT. A rejection refuses the request, and is logged.
 */
export type Authenticate = (
  request: AuthRequest,
) => Omit<Principal, 'kind'> | undefined | Promise<Omit<Principal, 'kind'> | undefined>;

/** How callers are authenticated; at least one of `keys`, `keyFile`, `jwt` and `authenticate`. */
export interface AuthOptions {
  /** The accepted API keys, as `rivulet keys new` prints their records. */
  readonly keys?: readonly KeyRecord[];
  /** A file of such records in YAML or JSON; it is read again after each change. */
  readonly keyFile?: string;
  readonly jwt?: JwtOptions;
  readonly authenticate?: Authenticate;
  /**
   * Secrets that sign stream tickets, at least 32 characters each: the first signs, all are accepted. Nodes behind one
   * address need the same. Default: one that the process makes.
   */
  readonly ticketSecrets?: readonly string[];
}

/** The principal of a request; `absent` without credentials, undefined for wrong ones. */
export type Verdict = Principal | 'absent' | undefined;

export interface VerifierOptions {
  readonly warn: (fields: object, message: string) => void;
  /** Whether the address has sent too many wrong credentials, so that only known good ones are accepted. */
  readonly isLimited: (ip: string) => boolean;
}

/** Milliseconds for which the app's own scheme may think. */
const maxWait = 10_000;
/** Milliseconds until credentials of an open stream are verified again, where they are no key. */
const verifyAgainAfter = 60_000;

/** Finds out whose credentials a request has. */
export class Verifier {
  readonly #ring = new KeyRing();
  readonly #file: WatchedFile<readonly KeyRecord[]> | undefined;
  readonly #jwt: JwtVerifier | undefined;
  readonly #own: Authenticate | undefined;
  readonly #options: VerifierOptions;
  /** By the headers of a request with an open stream, when its credentials are verified again. */
  readonly #verifyAgainAt = new WeakMap<IncomingHttpHeaders, number>();

  /** @throws Error that names a wrong option or file */
  constructor({ keys = [], keyFile, jwt, authenticate }: AuthOptions, options: VerifierOptions) {
    this.#options = options;
    this.#own = authenticate;
    const onProblem = (err: Error): void => options.warn({ err }, 'the last good keys stay in use');
    this.#ring.replace(checkKeyRecords(keys));
    if (keyFile !== undefined) {
      this.#file = new WatchedFile({
        path: keyFile,
        ifMissing: makeKeyFile(keyFile),
        // An id that is there twice is a mistake of the file, also where the other record is not in it.
        parse: (text) => checkKeyRecords([...keys, ...parseKeyFile(text)]),
        onChange: (all) => this.#ring.replace(all),
        onProblem,
      });
      this.#ring.replace(this.#file.value);
    }
    if (jwt !== undefined) this.#jwt = new JwtVerifier(jwt, { onProblem });
  }

  /** @throws RivuletError `auth_unavailable`, `rate_limited`, or what the app's own scheme throws */
  async verify(request: AuthRequest): Promise<Verdict> {
    const { headers, ip } = request;
    const token = tokenOf(headers);
    if (token?.startsWith('rvk_')) return this.#ring.verify(token);
    if (token !== undefined && this.#jwt !== undefined && isJwt(token)) {
      const known = this.#jwt.known(token);
      if (known !== undefined) return known;
      // Checking a signature costs a hundred times what a key costs. A caller whose token was good goes on.
      if (this.#options.isLimited(ip) && !this.#jwt.wasKnown(token)) throw fail('rate_limited');
      return this.#jwt.verify(token);
    }
    if (this.#own !== undefined) {
      if (this.#options.isLimited(ip)) throw fail('rate_limited');
      return this.#askOwn(this.#own, request);
    }
    return token === undefined ? 'absent' : undefined;
  }

  /**
   * Whether the credentials of a request that was let in still hold, for its open stream. Keys are looked up. Tokens, and
   * credentials of the app's own scheme, are verified again every minute, and tokens at their `exp`. What cannot be verified now holds.
   */
  async holds(request: AuthRequest, principal: Principal): Promise<boolean> {
    if (principal.kind === 'key') return this.#ring.holds(principal);
    const { headers } = request;
    const now = Date.now();
    const due = this.#verifyAgainAt.get(headers) ?? this.#freshUntil(headers, principal);
    const isFresh = now < due;
    this.#verifyAgainAt.set(headers, isFresh ? due : now + verifyAgainAfter);
    return isFresh || this.#verifyAgain(request, principal);
  }

  #freshUntil(headers: IncomingHttpHeaders, { kind }: Principal): number {
    if (kind === 'jwt') return this.#jwt?.freshUntil(tokenOf(headers) ?? '') ?? 0;
    return Date.now() + verifyAgainAfter;
  }

  async #verifyAgain(request: AuthRequest, principal: Principal): Promise<boolean> {
    const { headers } = request;
    try {
      if (principal.kind !== 'jwt') {
        const found = this.#own && (await this.#askOwn(this.#own, request));
        return typeof found === 'object' && mayTheSame(found, principal);
      }
      const found = await this.#jwt?.verify(tokenOf(headers) ?? '');
      const until = this.#freshUntil(headers, principal);
      this.#verifyAgainAt.set(headers, until);
      // After its `exp`, a token is accepted for as long as clocks may differ, but not kept.
      return found !== undefined && until > Date.now();
    } catch (error) {
      // The app's own scheme may refuse by throwing. Others throw where they cannot decide.
      return error instanceof RivuletError;
    }
  }

  close(): void {
    this.#file?.close();
    this.#jwt?.close();
  }

  async #askOwn(authenticate: Authenticate, request: AuthRequest): Promise<Verdict> {
    const asked = Promise.resolve(authenticate(request));
    const principal = await within(maxWait, asked, (error) =>
      error instanceof TooLate ? fail('auth_unavailable') : error,
    );
    return principal === undefined ? undefined : ownPrincipal(principal);
  }
}

/** The app's own principals cannot pass for those of keys or tokens, whatever their ids are. */
function ownPrincipal({ id, tenant, scopes, agents, claims }: Omit<Principal, 'kind'>): Principal {
  if (typeof id !== 'string' || id === '' || !Array.isArray(scopes)) {
    throw new TypeError('authenticate: expected a principal with an id and a list of scopes');
  }
  const principal: Principal = { id, kind: 'custom', tenant, scopes, agents, claims };
  if (canOwn(principal)) return principal;
  throw new TypeError(
    'authenticate: expected an id and a tenant of well-formed text, of at most 1,000 characters encoded',
  );
}

/** Whether two principals own the same, and may do the same. */
const mayTheSame = (one: Principal, other: Principal): boolean =>
  ownerOf(one) === ownerOf(other) &&
  JSON.stringify([one.scopes, one.agents]) === JSON.stringify([other.scopes, other.agents]);

/** Three parts of base64url. */
const isJwt = (token: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token);
