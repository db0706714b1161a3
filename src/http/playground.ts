import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { listsValue, matchesEtag } from './negotiation.ts';
import { playgroundPolicy } from './security-headers.ts';

/** The folder of the built page; the path is the same from `src` and from `dist`. */
const buildFolder = new URL('../../dist/playground/', import.meta.url);

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

interface File {
  readonly type: string;
  readonly etag: string;
  readonly plain: Buffer;
  readonly gzipped: Buffer;
}

/**
 * Serves the playground at `/` of the prefix: a few files, kept in memory and compressed once. `base` is the prefix as
 * clients see it. Where the package was not built, there is no page, and `/` answers 404.
 */
export async function servePlayground(app: FastifyInstance, base: string): Promise<void> {
  const index = await read('index.html');
  if (index === undefined) return;
  const schema = { hide: true };
  const headers = {
    'Content-Security-Policy': playgroundPolicy,
    'Cross-Origin-Opener-Policy': 'same-origin',
  };
  app.get('/', { schema }, (request, reply) => {
    const path = request.url.split('?', 1)[0] ?? '';
    // The page refers to its files by relative URLs.
    if (path !== '' && path === app.prefix) return reply.redirect(`${base}/`);
    // The router also matches `GET *`.
    if (!path.endsWith('/')) return reply.callNotFound();
    return send(request, reply.headers({ ...headers, 'Cache-Control': 'no-cache' }), index);
  });
  for (const name of await readdir(new URL('assets/', buildFolder))) {
    const file = await read(`assets/${name}`);
    if (file === undefined) continue;
    // The file names have a hash of the content.
    const forever = { ...headers, 'Cache-Control': 'public, max-age=31536000, immutable' };
    app.get(`/assets/${name}`, { schema }, (request, reply) => send(request, reply.headers(forever), file));
  }
}

async function read(path: string): Promise<File | undefined> {
  const plain = await readFile(new URL(path, buildFolder)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (plain === undefined) return undefined;
  return {
    type: types[extname(path)] ?? 'application/octet-stream',
    etag: `"${createHash('sha256').update(plain).digest('base64url').slice(0, 16)}"`,
    plain,
    gzipped: await promisify(gzip)(plain),
  };
}

function send({ headers }: FastifyRequest, reply: FastifyReply, { type, etag, plain, gzipped }: File): FastifyReply {
  reply.headers({ ETag: etag, Vary: 'Accept-Encoding' });
  if (matchesEtag(headers['if-none-match'], etag)) return reply.code(304).send();
  reply.type(type);
  return listsValue(String(headers['accept-encoding'] ?? ''), 'gzip')
    ? reply.header('Content-Encoding', 'gzip').send(gzipped)
    : reply.send(plain);
}
