import { exportJWK, type GenerateKeyPairResult, generateKeyPair, type JWTHeaderParameters, SignJWT } from 'jose';
import { answering } from './answering.ts';

export const issuer = 'https://login.example.com/';
export const audience = 'https://agents.example.com';

interface Signing {
  readonly kid: string;
  readonly alg: string;
  readonly pair: GenerateKeyPairResult;
}

/** An identity provider: it signs tokens, and publishes its public keys. */
export class TokenIssuer {
  readonly #keys: Signing[] = [];

  /** Adds a key, with which tokens are signed from now on. */
  async addKey(kid: string, alg = 'ES256'): Promise<Signing> {
    const key = { kid, alg, pair: await generateKeyPair(alg, { extractable: true }) };
    this.#keys.push(key);
    return key;
  }

  /** Removes the oldest key. */
  dropKey(): void {
    this.#keys.shift();
  }

  async jwks(): Promise<{ keys: object[] }> {
    const keys = this.#keys.map(async ({ kid, alg, pair }) => ({
      ...(await exportJWK(pair.publicKey)),
      kid,
      alg,
      use: 'sig',
    }));
    return { keys: await Promise.all(keys) };
  }

  /** A token with these claims; the defaults are those of a good one. */
  async sign(claims: Record<string, unknown> = {}, header: Partial<JWTHeaderParameters> = {}): Promise<string> {
    const key = this.#keys.at(-1) ?? (await this.addKey('first'));
    const now = Math.floor(Date.now() / 1_000);
    const all = {
      iss: issuer,
      aud: audience,
      sub: 'alice',
      scope: 'runs:read runs:write',
      iat: now,
      exp: now + 300,
      ...claims,
    };
    return new SignJWT(all).setProtectedHeader({ alg: key.alg, kid: key.kid, ...header }).sign(key.pair.privateKey);
  }
}

/** A token issuer whose keys a server reads over HTTP. It may go away and come back. */
export async function serveKeys(tokens: TokenIssuer) {
  const state = { isAway: false, requests: 0 };
  const url = await answering(async (_request, response) => {
    state.requests += 1;
    if (state.isAway) return response.writeHead(503).end();
    response.end(JSON.stringify(await tokens.jwks()));
  });
  return { state, url: `${url}/keys` };
}
