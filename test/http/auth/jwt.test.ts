import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { CompactSign, exportSPKI, SignJWT } from 'jose';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { parseKeySet, RemoteKeySet } from '../../../src/http/auth/jwks.ts';
import { type JwtOptions, JwtVerifier } from '../../../src/http/auth/jwt.ts';
import { newFolder } from '../../support/folder.ts';
import { endless, listenAs, trickle } from '../../support/hostile-servers.ts';
import { audience, issuer, serveKeys, TokenIssuer } from '../../support/token-issuer.ts';

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const now = (): number => Math.floor(Date.now() / 1_000);

/** A verifier of the issuer's keys as they are now. */
async function verifierOf(tokens: TokenIssuer, options: Partial<JwtOptions> = {}): Promise<JwtVerifier> {
  const findKey = parseKeySet(JSON.stringify(await tokens.jwks()));
  const verifier = new JwtVerifier({ issuer, audience, jwks: 'unused', ...options }, { onProblem: () => {}, findKey });
  onTestFinished(() => verifier.close());
  return verifier;
}

async function issuerWithKey(alg?: string): Promise<TokenIssuer> {
  const tokens = new TokenIssuer();
  await tokens.addKey('first', alg);
  return tokens;
}

describe('a JWT', () => {
  it.each(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519'])(
    'is accepted with a signature of %s',
    async (alg) => {
      const tokens = await issuerWithKey(alg);
      const principal = await (await verifierOf(tokens)).verify(await tokens.sign());
      expect(principal).toEqual({ id: `${issuer} alice`, kind: 'jwt', scopes: ['runs:read', 'runs:write'] });
    },
  );

  it.each([
    ['scope, a text', { scope: 'runs:read  admin' }, ['runs:read', 'admin']],
    ['scp, a list', { scope: undefined, scp: ['runs:read', 7] }, ['runs:read']],
    ['scp, a text', { scope: undefined, scp: 'runs:read runs:write' }, ['runs:read', 'runs:write']],
    ['neither', { scope: undefined }, []],
  ])('has the scopes of the claim %s', async (_name, claims, scopes) => {
    const tokens = await issuerWithKey();
    expect(await (await verifierOf(tokens)).verify(await tokens.sign(claims))).toMatchObject({ scopes });
  });

  it('has the tenant, agents and claims that the configuration names, and no other claims', async () => {
    const tokens = await issuerWithKey();
    const verifier = await verifierOf(tokens, {
      tenantClaim: 'org_id',
      agentsClaim: 'agents',
      claims: ['email', 'phone'],
    });
    const claims = { org_id: 'acme', agents: ['echo', 'chat-*'], email: 'a@example.com', secret: 'x' };
    expect(await verifier.verify(await tokens.sign(claims))).toEqual({
      id: `${issuer} alice`,
      kind: 'jwt',
      tenant: 'acme',
      scopes: ['runs:read', 'runs:write'],
      agents: ['echo', 'chat-*'],
      claims: { email: 'a@example.com' },
    });
    expect(await verifier.verify(await tokens.sign({ org_id: 'acme' }))).toMatchObject({ agents: [] });
    for (const org_id of [undefined, '', 7, ['acme']]) {
      expect(await verifier.verify(await tokens.sign({ org_id }))).toBeUndefined();
    }
  });

  it('need not name its key while the issuer has an old and a new one', async () => {
    const tokens = await issuerWithKey();
    const old = await tokens.sign({}, { kid: undefined });
    await tokens.addKey('second');
    const verifier = await verifierOf(tokens);
    expect(await verifier.verify(old)).toBeDefined();
    expect(await verifier.verify(await tokens.sign({}, { kid: undefined }))).toBeDefined();
    const other = new TokenIssuer();
    await other.addKey('first');
    expect(await verifier.verify(await other.sign({}, { kid: undefined }))).toBeUndefined();
    expect(await verifier.verify(await tokens.sign({ exp: now() - 100 }, { kid: undefined }))).toBeUndefined();
  });

  it('may be late or early by as much as clocks differ', async () => {
    const tokens = await issuerWithKey();
    const verifier = await verifierOf(tokens);
    expect(await verifier.verify(await tokens.sign({ exp: now() - 10 }))).toBeDefined();
    expect(await verifier.verify(await tokens.sign({ nbf: now() + 10 }))).toBeDefined();
    expect(await verifier.verify(await tokens.sign({ exp: now() + 60.123_456_7 }))).toBeDefined();
    expect(await verifier.verify(await tokens.sign({ nbf: now() + 120 }))).toBeUndefined();
  });

  it('is verified once, and then known until it expires', async () => {
    const tokens = await issuerWithKey();
    const verifier = await verifierOf(tokens);
    const [token, late] = [await tokens.sign(), await tokens.sign({ exp: now() - 10 })];
    expect(verifier.known(token)).toBeUndefined();
    const principal = await verifier.verify(token);
    expect(verifier.known(token)).toBe(principal);
    await verifier.verify(late);
    expect(verifier.known(late)).toBeUndefined();
  });

  it('needs the type that the configuration names', async () => {
    const tokens = await issuerWithKey();
    const verifier = await verifierOf(tokens, { type: 'at+jwt' });
    expect(await verifier.verify(await tokens.sign({}, { typ: 'at+jwt' }))).toBeDefined();
    expect(await verifier.verify(await tokens.sign({}, { typ: 'JWT' }))).toBeUndefined();
  });
});

describe('an attack with a JWT is refused:', () => {
  type Attack = (tokens: TokenIssuer) => Promise<string> | string;
  const claims = () => ({ iss: issuer, aud: audience, sub: 'mallory', scope: 'admin', exp: now() + 300 });
  const attacks: Record<string, Attack> = {
    'no signature, alg none': () => `${base64({ alg: 'none' })}.${base64(claims())}.`,
    'no signature, alg NONE': () => `${base64({ alg: 'NONE', kid: 'first' })}.${base64(claims())}.`,
    'the public key as the secret of HS256': async (tokens) => {
      const { pair } = await tokens.addKey('public', 'RS256');
      const head = `${base64({ alg: 'HS256', kid: 'first' })}.${base64(claims())}`;
      return `${head}.${createHmac('sha256', await exportSPKI(pair.publicKey))
        .update(head)
        .digest('base64url')}`;
    },
    'an unknown key': async () => (await issuerWithOther()).sign({}, { kid: 'other' }),
    'another key under a known id': async () => (await issuerWithOther()).sign({}, { kid: 'first' }),
    'a key that the token brings itself': async () => {
      const other = await issuerWithOther();
      const [jwk] = (await other.jwks()).keys;
      return other.sign({}, { kid: 'first', jwk: { ...jwk } });
    },
    'the address of a key': async () =>
      (await issuerWithOther()).sign(
        {},
        { kid: 'first', jku: 'https://evil.example/keys', x5u: 'https://evil.example' },
      ),
    'another audience': (tokens) => tokens.sign({ aud: 'https://other.example.com' }),
    'no audience': (tokens) => tokens.sign({ aud: undefined }),
    'another issuer': (tokens) => tokens.sign({ iss: 'https://evil.example/' }),
    'the issuer as a list': (tokens) => tokens.sign({ iss: [issuer] }),
    'an end in the past': (tokens) => tokens.sign({ exp: now() - 3_600 }),
    'no end': (tokens) => tokens.sign({ exp: undefined }),
    'an end that is a text': (tokens) => tokens.sign({ exp: '9999999999' }),
    'no subject': (tokens) => tokens.sign({ sub: undefined }),
    'an empty subject': (tokens) => tokens.sign({ sub: '' }),
    'half of a character as the subject': (tokens) => tokens.sign({ sub: '\ud800' }),
    'a subject too long for an index': (tokens) => tokens.sign({ sub: 'x'.repeat(1_000) }),
    'a critical header that the server does not know': async (tokens) => {
      const { pair } = await tokens.addKey('critical');
      const header = { alg: 'ES256', kid: 'critical', crit: ['x'], x: 1 };
      return new SignJWT(claims()).setProtectedHeader(header).sign(pair.privateKey, { crit: { x: true } });
    },
    'a signature that is cut': async (tokens) => (await tokens.sign()).slice(0, -2),
    'claims that were changed': async (tokens) => {
      const [head, , signature] = (await tokens.sign()).split('.');
      return `${head}.${base64(claims())}.${signature}`;
    },
    'a payload that is no object': async (tokens) => {
      const { pair } = await tokens.addKey('text');
      const text = new TextEncoder().encode('"alice"');
      return new CompactSign(text).setProtectedHeader({ alg: 'ES256', kid: 'text' }).sign(pair.privateKey);
    },
    '100 kB': (tokens) => tokens.sign({ padding: 'x'.repeat(100_000) }),
    'an algorithm that the configuration does not name': async () => {
      const { pair } = await (await issuerWithOther()).addKey('first', 'RS512');
      return new SignJWT(claims()).setProtectedHeader({ alg: 'RS512', kid: 'first' }).sign(pair.privateKey);
    },
    'three dots': () => '..',
    nothing: () => '',
  };
  const issuerWithOther = async (): Promise<TokenIssuer> => {
    const tokens = new TokenIssuer();
    await tokens.addKey('other');
    return tokens;
  };

  it.each(Object.entries(attacks))('%s', async (_name, attack) => {
    const tokens = await issuerWithKey();
    const token = await attack(tokens);
    const verifier = await verifierOf(tokens);
    expect(await verifier.verify(token)).toBeUndefined();
    expect(verifier.known(token)).toBeUndefined();
    // The keys are good: the attack was refused, and not everything.
    expect(await verifier.verify(await tokens.sign())).toBeDefined();
  });
});

describe('the keys of an issuer over HTTP', () => {
  async function remote(times: { maxAge?: number; coolDown?: number; keepFor?: number } = {}) {
    const tokens = await issuerWithKey();
    const { state, url } = await serveKeys(tokens);
    const problems: Error[] = [];
    const keySet = new RemoteKeySet({ url, onChange: () => {}, onProblem: (error) => problems.push(error), ...times });
    const verifier = new JwtVerifier({ issuer, audience, jwks: url }, { onProblem: () => {}, findKey: keySet.find });
    onTestFinished(() => verifier.close());
    return { tokens, state, problems, verifier };
  }

  it('are read once for many tokens', async () => {
    const { tokens, state, verifier } = await remote();
    const all = await Promise.all(Array.from({ length: 20 }, (_, at) => tokens.sign({ sub: `user ${at}` })));
    expect((await Promise.all(all.map((token) => verifier.verify(token)))).every(Boolean)).toBe(true);
    expect(state.requests).toBe(1);
  });

  it('are read again for a token with a new key, so that keys rotate without a restart', async () => {
    const { tokens, verifier } = await remote({ coolDown: 0 });
    const old = await tokens.sign({ sub: 'old' });
    expect(await verifier.verify(await tokens.sign())).toBeDefined();
    await tokens.addKey('second');
    expect(await verifier.verify(await tokens.sign())).toBeDefined();
    expect(await verifier.verify(old)).toBeDefined();
    // The old key is withdrawn; the third one makes the server read.
    tokens.dropKey();
    await tokens.addKey('third');
    expect(await verifier.verify(await tokens.sign())).toBeDefined();
    expect(await verifier.verify(old)).toBeUndefined();
  });

  it('are not asked for by every token with an unknown key', async () => {
    const { tokens, state, verifier } = await remote();
    await verifier.verify(await tokens.sign());
    for (let count = 0; count < 20; count += 1) {
      expect(await verifier.verify(await tokens.sign({}, { kid: `unknown ${count}` }))).toBeUndefined();
    }
    expect(state.requests).toBe(1);
  });

  it('stay in use while the issuer is away, for longer than their age', async () => {
    const { tokens, state, problems, verifier } = await remote({ maxAge: 0, coolDown: 0 });
    expect(await verifier.verify(await tokens.sign())).toBeDefined();
    state.isAway = true;
    for (let count = 0; count < 5; count += 1) {
      expect(await verifier.verify(await tokens.sign({ sub: `user ${count}` }))).toBeDefined();
    }
    await expect.poll(() => problems.length).toBeGreaterThan(0);
  });

  it('are unavailable, which is not the fault of the token, where none were ever read or they are too old', async () => {
    const never = await remote({ coolDown: 0 });
    never.state.isAway = true;
    await expect(never.verifier.verify(await never.tokens.sign())).rejects.toMatchObject({ kind: 'auth_unavailable' });
    never.state.isAway = false;
    expect(await never.verifier.verify(await never.tokens.sign())).toBeDefined();

    const old = await remote({ maxAge: 0, coolDown: 0, keepFor: 0 });
    expect(await old.verifier.verify(await old.tokens.sign()).catch((error) => error.kind)).toBe('auth_unavailable');
  });

  it.each<[what: string, answer: (response: ServerResponse) => Promise<unknown>, problem: string]>([
    ['without an end', (response) => endless(response, 'application/json', '"'), 'expected at most 1048576 characters'],
    [
      'byte by byte',
      (response) => {
        // On Node 20, `fetch` loses a signal that is collected while the body is read.
        setTimeout(collectGarbage, 100);
        return trickle(response, 'application/json', ' ');
      },
      'no answer for 1 s',
    ],
    [
      'of an error without an end',
      (response) => endless(response.writeHead(500), 'application/json', '"'),
      'expected status 200; got 500',
    ],
  ])('are unavailable where their answer is one %s, which is left', async (_, answer, problem) => {
    let left: Promise<unknown> | undefined;
    const problems: Error[] = [];
    const url = await listenAs((_request, response) => {
      left = answer(response);
    });
    const options = { url, timeout: 1_000, onChange: () => {}, onProblem: (error: Error) => problems.push(error) };
    const keys = new RemoteKeySet(options);
    await expect(keys.find({ alg: 'ES256' }, { payload: '', signature: '' })).rejects.toMatchObject({
      kind: 'auth_unavailable',
    });
    await left;
    expect(problems[0]?.cause).toMatchObject({ message: expect.stringContaining(problem) });
  });

  it('may be in a file, and another file replaces them', async () => {
    const path = join(newFolder(onTestFinished), 'keys.json');
    const tokens = await issuerWithKey();
    writeFileSync(path, JSON.stringify(await tokens.jwks()));
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const verifier = new JwtVerifier({ issuer, audience, jwks: path }, { onProblem: () => {} });
    onTestFinished(() => verifier.close());
    const old = await tokens.sign();
    expect(await verifier.verify(old)).toBeDefined();
    tokens.dropKey();
    await tokens.addKey('second');
    writeFileSync(path, JSON.stringify(await tokens.jwks()));
    vi.advanceTimersByTime(4_000);
    expect(await verifier.verify(await tokens.sign())).toBeDefined();
    // Known tokens are forgotten with the keys.
    expect(verifier.known(old)).toBeUndefined();
    expect(await verifier.verify(old)).toBeUndefined();
  });

  it.each([
    [{ issuer: '' }, /auth\.jwt\.issuer/],
    [{ issuer: 'two words' }, /auth\.jwt\.issuer/],
    [{ audience: [] }, /auth\.jwt\.audience/],
    [{ audience: '' }, /auth\.jwt\.audience/],
    [{ algorithms: [] }, /auth\.jwt\.algorithms/],
    [{ jwks: '/nowhere/keys.json' }, /\/nowhere\/keys\.json/],
  ])('need valid options: %o', (options, problem) => {
    const all = { issuer, audience, jwks: 'https://login.example.com/keys', ...options };
    expect(() => new JwtVerifier(all, { onProblem: () => {} })).toThrow(problem);
  });
});
