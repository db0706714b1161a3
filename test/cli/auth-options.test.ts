import { Value } from '@sinclair/typebox/value';
import { describe, expect, it } from 'vitest';
import { authOptions, forgetSecrets, refuseOpenAccess } from '../../src/cli/settings/consequences.ts';
import { Settings } from '../../src/cli/settings/settings.ts';
import { makeApiKey } from '../../src/http/auth/api-key.ts';

const settings = (auth: object, more: object = {}): Settings =>
  Value.Parse(Settings, Value.Default(Settings, { auth, ...more }));
const jwt = { issuer: 'https://login.example.com/', audience: ['agents'], jwks: 'https://login.example.com/keys' };

describe('authentication of `serve`', () => {
  it('is off by default', () => {
    expect(authOptions(settings({}))).toBeUndefined();
  });

  it('is on with a file of keys, keys of the environment, or JWTs', () => {
    const { key } = makeApiKey();
    expect(authOptions(settings({ keyFile: 'keys.yaml' }))).toMatchObject({ keyFile: 'keys.yaml' });
    expect(authOptions(settings({ apiKeys: `alice=${key}` }))).toMatchObject({ keys: [{ principal: 'alice' }] });
    expect(JSON.stringify(authOptions(settings({ apiKeys: `alice=${key}` })))).not.toContain(key);
    expect(authOptions(settings({ jwt: { ...jwt, tenantClaim: 'org_id' } }))).toMatchObject({
      jwt: { ...jwt, tenantClaim: 'org_id' },
    });
  });

  it('needs issuer, audience and keys of JWTs together', () => {
    const { jwks: _, ...rest } = jwt;
    expect(() => authOptions(settings({ jwt: rest }))).toThrow('missing: jwks');
    expect(() => authOptions(settings({ jwt: { issuer: jwt.issuer } }))).toThrow('missing: audience, jwks');
  });

  it('cannot be on and off', () => {
    expect(() => authOptions(settings({ keyFile: 'keys.yaml', required: false }))).toThrow(/--no-auth .* contradicts/);
  });

  it('is needed at an address that other computers reach, unless --no-auth says that it is not', () => {
    const refused = (auth: object, host: string) => {
      const all = settings(auth, { host });
      return () => refuseOpenAccess(all, authOptions(all));
    };
    for (const host of ['0.0.0.0', '::', '192.0.2.7', 'agents.example.com']) {
      expect(refused({}, host)).toThrow(/give --keys FILE/);
      expect(refused({ required: false }, host)).not.toThrow();
      expect(refused({ keyFile: 'keys.yaml' }, host)).not.toThrow();
    }
    for (const host of ['127.0.0.1', '::1', 'localhost']) expect(refused({}, host)).not.toThrow();
  });

  it('leaves no secret in the environment, which agents and their child processes see', () => {
    const secrets = ['RIVULET_API_KEYS', 'RIVULET_TICKET_SECRETS', 'RIVULET_WEBHOOK_SECRET', 'RIVULET_STORE'];
    const env = { ...Object.fromEntries(secrets.map((name) => [name, 'x'])), PATH: 'c' };
    forgetSecrets(env);
    expect(env).toEqual({ PATH: 'c' });
  });
});
