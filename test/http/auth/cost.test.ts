import { expect, it, onTestFinished } from 'vitest';
import { makeApiKey } from '../../../src/http/auth/api-key.ts';
import { Verifier } from '../../../src/http/auth/credentials.ts';
import { recordOf } from '../../../src/http/auth/key-records.ts';
import { Signatures } from '../../../src/http/auth/signatures.ts';
import { StreamTickets } from '../../../src/http/auth/stream-ticket.ts';
import { audience, issuer, serveKeys, TokenIssuer } from '../../support/token-issuer.ts';

/** Microseconds of CPU in the fastest of several rounds; other processes do not count. */
function timeOf(call: () => unknown, calls = 1_000): number {
  const times = Array.from({ length: 10 }, () => {
    const before = process.cpuUsage();
    for (let count = 0; count < calls; count += 1) call();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / calls;
  });
  return Math.min(...times);
}

it('authentication costs microseconds a request where the key is listed or the token is known', async () => {
  const tokens = new TokenIssuer();
  const { url: jwks } = await serveKeys(tokens);
  const { key } = makeApiKey();
  const verifier = new Verifier(
    { keys: [recordOf(key, { principal: 'alice' })], jwt: { issuer, audience, jwks } },
    { warn: () => {}, isLimited: () => false },
  );
  onTestFinished(() => verifier.close());
  const request = (token: string) => ({
    headers: { authorization: `Bearer ${token}` },
    method: 'GET',
    url: '/runs',
    ip: '127.0.0.1',
  });
  const [withKey, withToken, unknown] = [key, await tokens.sign(), makeApiKey().key].map(request);
  if (withKey === undefined || withToken === undefined || unknown === undefined) throw new Error('no request');
  await verifier.verify(withToken);
  const { ticket } = new StreamTickets(new Signatures(['a secret of at least 32 characters'])).issue(
    { id: 'a', kind: 'key', scopes: [] },
    'r',
  );
  const tickets = new StreamTickets(new Signatures(['a secret of at least 32 characters']));
  const costs = {
    'API key': timeOf(() => verifier.verify(withKey)),
    'unknown API key': timeOf(() => verifier.verify(unknown)),
    'JWT, known': timeOf(() => verifier.verify(withToken)),
    'stream ticket': timeOf(() => tickets.read(ticket)),
  };
  console.log(
    Object.entries(costs)
      .map(([name, cost]) => `${name}: ${cost.toFixed(1)} µs`)
      .join('\n'),
  );
  // On a machine of the tests it is about 4; this is for one that is much slower.
  expect(costs['API key']).toBeLessThan(100);
  expect(costs['JWT, known']).toBeLessThan(100);
});
