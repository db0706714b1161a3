import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { once } from '../../core/once.ts';
import { listsValue, matchesEtag } from '../requests/negotiation.ts';
import { addVary } from './caching.ts';
import { docsPolicy, guidePolicy, playgroundPolicy } from './security-headers.ts';

/** The folder of the built pages; the path is the same from `src` and from `dist`. */
const buildFolder = new URL('../../../dist/playground/', import.meta.url);

/** The first page of the guide, at `/docs/guide`. */
const guideStart = 'guide/overview.html';

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
};

interface File {
  readonly type: string;
  readonly etag: string;
  readonly plain: Buffer;
  readonly gzipped: Buffer;
}

// A browser loads pages without credentials; what they show, they ask for with a token.
const route = { config: { open: true }, schema: { hide: true } } as const;

interface Pages {
  /** The prefix as clients see it. */
  readonly base: string;
  readonly playground: boolean;
  readonly docs: boolean;
}

/**
 * Serves the playground at `/` of the prefix, the API reference at `/docs` and the guide at `/docs/guide`. Each file is
 * read and compressed when a browser first asks for it, and kept in memory. Where the package was not built, there is
 * no page, and these paths answer 404.
 */
export async function servePages(app: FastifyInstance, { base, playground, docs }: Pages): Promise<void> {
  const [assets, guide] = await Promise.all([filesIn('assets'), filesIn('guide')]);
  if (assets.length === 0 || !(playground || docs)) return;
  // The pages refer to their files by relative URLs, so each has one address: with a slash at its end, or without.
  if (playground) servePage(app, { base, path: '/', files: ['index.html'], policy: playgroundPolicy });
  if (docs) {
    servePage(app, { base, path: '/docs', files: ['docs.html'], policy: docsPolicy });
    servePage(app, { base, path: '/docs/guide', files: [guideStart], policy: guidePolicy });
    // One route for all of them: each route costs the start half a millisecond.
    const files = guide.map((name) => `guide/${name}`).filter((name) => name !== guideStart);
    servePage(app, { base, path: '/docs/guide/:page', files, policy: guidePolicy });
  }
  for (const name of assets) {
    const file = once(() => read(`assets/${name}`));
    // The file names have a hash of the content.
    const headers = { 'Cache-Control': 'public, max-age=31536000, immutable' };
    app.get(`/assets/${name}`, route, async (request, reply) => send(request, reply.headers(headers), await file()));
  }
}

/** The names of the built files of a folder; none where the package was not built. */
async function filesIn(folder: string): Promise<readonly string[]> {
  return readdir(new URL(`${folder}/`, buildFolder)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
}

interface Page {
  readonly base: string;
  /** A path with `:page` has a page for each file, by its name without the extension. */
  readonly path: '/' | '/docs' | '/docs/guide' | '/docs/guide/:page';
  readonly files: readonly string[];
  readonly policy: string;
}

function servePage(app: FastifyInstance, { base, path, files, policy }: Page): void {
  const pathOf = (file: string): string => path.replace(':page', basename(file, '.html'));
  const pages = new Map(files.map((file) => [pathOf(file), once(() => read(file))]));
  const headers = {
    'Content-Security-Policy': policy,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cache-Control': 'no-cache',
  };
  app.get<{ Params: { page?: string } }>(path, route, async (request, reply) => {
    const wanted = path.replace(':page', () => request.params.page ?? '');
    const file = pages.get(wanted);
    if (file === undefined) return reply.callNotFound();
    const asked = request.url.split('?', 1)[0] ?? '';
    if (asked.endsWith('/') === path.endsWith('/')) return send(request, reply.headers(headers), await file());
    // The router also matches `GET *` with the route of `/`.
    if (path === '/' && asked !== app.prefix) return reply.callNotFound();
    return reply.redirect(`${base}${wanted}`);
  });
}

async function read(path: string): Promise<File> {
  const plain = await readFile(new URL(path, buildFolder));
  return {
    type: types[extname(path)] ?? 'application/octet-stream',
    etag: `"${createHash('sha256').update(plain).digest('base64url').slice(0, 16)}"`,
    plain,
    gzipped: await promisify(gzip)(plain),
  };
}

function send({ headers }: FastifyRequest, reply: FastifyReply, { type, etag, plain, gzipped }: File): FastifyReply {
  addVary(reply.header('ETag', etag), 'Accept-Encoding');
  if (matchesEtag(headers['if-none-match'], etag)) return reply.code(304).send();
  reply.type(type);
  return listsValue(String(headers['accept-encoding'] ?? ''), 'gzip')
    ? reply.header('Content-Encoding', 'gzip').send(gzipped)
    : reply.send(plain);
}
