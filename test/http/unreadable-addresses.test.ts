import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { makeApiKey } from '../../src/http/auth/api-key.ts';
import { recordOf } from '../../src/http/auth/key-records.ts';
import { echo } from '../support/agents.ts';
import { Lines } from '../support/lines.ts';
import { serve } from '../support/serve.ts';

const { key } = makeApiKey();
const record = recordOf(key, { principal: 'ada' });
const secret = 'hunter2';

/** Paths that a router would refuse by itself: they cannot be decoded, or a part of them is long. */
const paths = [
  '/%zz',
  '/runs/%ff',
  '/agents/%',
  `/agents/${key}%zz`,
  '/v1/%E0%A4%A',
  `/agents/${'a'.repeat(5_000)}`,
  `/runs/${'a'.repeat(5_000)}`,
  `/a2a/${'a'.repeat(5_000)}/tasks`,
];

describe('a path that cannot be decoded, or is too long', () => {
  it('is checked, answered and logged like any other', async () => {
    const lines = new Lines();
    const served = await serve([echo], {
      logger: { level: 'info', stream: lines.stream },
      auth: { keys: [record] },
      requestsPerMinute: paths.length,
    });
    const get = (path: string, headers: Record<string, string> = {}) =>
      served.app.inject({
        url: `${path}?token=${secret}`,
        headers: { host: 'localhost', authorization: `Bearer ${key}`, ...headers },
      });
    for (const path of paths) {
      const { statusCode, headers, body } = await get(path);
      expect([path, [400, 404, 422].includes(statusCode)]).toEqual([path, true]);
      expect(headers).toMatchObject({
        'content-security-policy': expect.stringContaining("default-src 'none'"),
        'x-content-type-options': 'nosniff',
        ratelimit: expect.any(String),
      });
      expect(body.length).toBeLessThan(2_000);
      for (const text of [secret, key]) expect(body).not.toContain(text);
    }
    for (const path of paths) {
      expect((await get(path)).statusCode).toBe(429);
      expect((await get(path, { host: 'evil.example' })).statusCode).toBe(421);
      expect((await get(path, { origin: 'https://evil.example' })).statusCode).toBe(403);
      expect((await get(path, { authorization: 'Bearer wrong' })).statusCode).toBe(401);
    }
    await expect.poll(() => lines.all('request').length).toBe(paths.length * 5);
    for (const text of [secret, key]) expect(lines.text).not.toContain(text);
  });

  it('is refused with what is wrong', async () => {
    const served = await serve([echo]);
    const { statusCode, body } = await served.app.inject('/runs/%zz');
    expect([statusCode, JSON.parse(body).message]).toEqual([
      400,
      'The path has a percent sign that does not begin an encoded character of UTF-8.',
    ]);
    expect((await served.app.inject('/agents/%65cho?x=%zz')).statusCode).toBe(200);
  });
});

describe('a request that is no HTTP', () => {
  it('is answered with the headers of all answers, and logged', async () => {
    const lines = new Lines();
    const served = await serve([echo], { logger: { level: 'info', stream: lines.stream } });
    const { port } = new URL(served.url);
    const bytes = Buffer.from('GET /runs HTTP/1.1\r\nHost: localhost\r\nBad Header\r\n\r\n');
    const raw: string[] = [];
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.on('data', (chunk) => raw.push(String(chunk))).on('close', () => resolve());
      socket.write(bytes);
    });
    expect(raw.join('')).toMatch(/^HTTP\/1\.1 400 /);
    expect(raw.join('')).toContain('x-content-type-options: nosniff');
    expect(await lines.find(({ msg }) => msg === 'request')).toMatchObject({ status: 400, reason: 'bad_request' });
  });
});
