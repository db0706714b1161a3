import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import Fastify from 'fastify';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createServer, rivulet } from '../../src/index.ts';
import { echo } from '../support/agents.ts';

const root = resolve(import.meta.dirname, '../..');

async function server(options: object = {}) {
  const app = await createServer({ agents: [echo], docs: false, ...options });
  onTestFinished(() => app.close());
  return app;
}

const assetsOf = (html: string): string[] => [...html.matchAll(/"\.\/(assets\/[^"]+)"/g)].map(([, path = '']) => path);

describe('the playground over HTTP', () => {
  beforeAll(async () => {
    if (existsSync(resolve(root, 'dist/playground/index.html'))) return;
    const { build } = await import('vite');
    await build({ root, logLevel: 'error' });
  });

  it('is revalidated each time, and its assets are cached for ever', async () => {
    const app = await server();
    const page = await app.inject('/');
    expect(page.statusCode).toBe(200);
    expect(page.headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' });
    const again = await app.inject({ url: '/', headers: { 'if-none-match': page.headers.etag } });
    expect([again.statusCode, again.body]).toEqual([304, '']);
    const assets = assetsOf(page.body);
    expect(assets).toHaveLength(3);
    for (const path of assets) {
      const asset = await app.inject(`/${path}`);
      expect(asset.statusCode).toBe(200);
      expect(asset.headers['cache-control']).toBe('public, max-age=31536000, immutable');
      expect(asset.headers['x-content-type-options']).toBe('nosniff');
    }
  });

  it('may run only its own scripts, and call only its own server', async () => {
    const app = await server();
    const { headers, body } = await app.inject('/');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(body).not.toMatch(/<script(?![^>]* src=)|<style|https?:\/\//);
  });

  it('is compressed for clients that accept it, and is as small as its page of the docs says', async () => {
    const app = await server();
    let size = 0;
    for (const path of ['', ...assetsOf((await app.inject('/')).body)]) {
      const plain = await app.inject(`/${path}`);
      const small = await app.inject({ url: `/${path}`, headers: { 'accept-encoding': 'br, gzip' } });
      expect(plain.headers['content-encoding']).toBeUndefined();
      expect(small.headers['content-encoding']).toBe('gzip');
      expect(gunzipSync(small.rawPayload).equals(plain.rawPayload)).toBe(true);
      size += gzipSync(plain.rawPayload).length;
    }
    const [, said] = /page is ([\d.]+) kB/.exec(readFileSync(resolve(root, 'docs/playground.md'), 'utf8')) ?? [];
    expect(Math.abs(size / 1000 - Number(said))).toBeLessThan(2);
  });

  it('can be switched off', async () => {
    const app = await server({ playground: false });
    const page = await app.inject('/');
    expect([page.statusCode, page.json().code]).toEqual([404, 'not_found']);
  });

  it('is served under the prefix of a plugin with a slash, to which its URLs are relative', async () => {
    const app = Fastify({ routerOptions: { ignoreTrailingSlash: true } });
    onTestFinished(() => app.close());
    await app.register(rivulet, { prefix: '/acp', agents: [echo], docs: false });
    const bare = await app.inject('/acp');
    expect([bare.statusCode, bare.headers.location]).toEqual([302, '/acp/']);
    const page = await app.inject('/acp/');
    const [asset] = assetsOf(page.body);
    expect((await app.inject(`/acp/${asset}`)).statusCode).toBe(200);
  });

  it('does not change any other path', async () => {
    const app = await server();
    for (const url of ['/assets/', '/assets/../package.json', '/assets/nothing.js', '/index.html']) {
      expect((await app.inject(url)).statusCode, url).toBe(404);
    }
    expect((await app.inject({ method: 'POST', url: '/' })).statusCode).toBe(405);
  });
});

describe('the API reference over HTTP', () => {
  it('has one address, and files of its own, which it refers to by relative URLs', async () => {
    const app = await server({ docs: true, playground: false });
    expect((await app.inject('/docs/')).headers.location).toBe('/docs');
    const page = await app.inject('/docs');
    expect([page.statusCode, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    const assets = assetsOf(page.body);
    expect(assets).toHaveLength(2);
    for (const path of assets) expect((await app.inject(`/${path}`)).statusCode).toBe(200);
    expect((await app.inject('/')).statusCode).toBe(404);
  });

  it('may run only its own scripts, and call only its own server', async () => {
    const app = await server({ docs: true });
    const { headers, body } = await app.inject('/docs');
    expect(headers['content-security-policy']).toContain("default-src 'none'; script-src 'self';");
    expect(headers['content-security-policy']).toContain("connect-src 'self'");
    expect(body).not.toMatch(/<script(?![^>]* src=)|<style|https?:\/\//);
  });

  it('can be switched off', async () => {
    const app = await server({ docs: false });
    expect((await app.inject('/docs')).statusCode).toBe(404);
  });
});

describe('the guide over HTTP', () => {
  it('has one address a page, also below a prefix, to which its URLs are relative', async () => {
    const app = Fastify({ routerOptions: { ignoreTrailingSlash: true } });
    onTestFinished(() => app.close());
    await app.register(rivulet, { prefix: '/acp', agents: [echo] });
    for (const path of ['/acp/docs/guide', '/acp/docs/guide/approvals']) {
      expect((await app.inject(`${path}/`)).headers.location).toBe(path);
      const { statusCode, headers, body } = await app.inject(path);
      expect([statusCode, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
      const urls = [...body.matchAll(/ (?:href|src|data-index|data-guide)="(\.\.[^"]*)"/g)];
      const paths = new Set(urls.map(([, url = '']) => new URL(url, `http://guide${path}`).pathname));
      expect([...paths].filter((one) => one.startsWith('/acp/assets/')).length).toBeGreaterThanOrEqual(4);
      for (const one of paths) expect([one, (await app.inject(one)).statusCode]).toEqual([one, 200]);
    }
  });

  it('is revalidated each time, answers HEAD, and says which pages there are not', async () => {
    const app = await server({ docs: true, playground: false });
    const page = await app.inject('/docs/guide/approvals');
    expect(page.headers).toMatchObject({ 'cache-control': 'no-cache', vary: 'Accept-Encoding' });
    const again = await app.inject({ url: '/docs/guide/approvals', headers: { 'if-none-match': page.headers.etag } });
    expect([again.statusCode, again.body]).toEqual([304, '']);
    const head = await app.inject({ method: 'HEAD', url: '/docs/guide/approvals' });
    expect([head.statusCode, head.body, head.headers.etag]).toEqual([200, '', page.headers.etag]);
    for (const url of [
      '/docs/guide/nothing',
      '/docs/guide/approvals.html',
      '/docs/guide/overview',
      '/docs/guide/..%2f',
    ]) {
      expect((await app.inject(url)).statusCode, url).toBe(404);
    }
  });

  it('may run only its own scripts, and call only its own server', async () => {
    const app = await server({ docs: true });
    const { headers, body } = await app.inject('/docs/guide/approvals');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'",
    );
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(body).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=|src="https?:/);
  });

  it('can be switched off', async () => {
    const app = await server({ docs: false });
    for (const url of ['/docs/guide', '/docs/guide/approvals']) {
      expect((await app.inject(url)).statusCode, url).toBe(404);
    }
  });
});
