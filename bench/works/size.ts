/** What an installation weighs. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Figures, Found } from '../work.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const { dependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** What each peer's documentation tells to install, to serve what the bench asks of it. */
const peers: Readonly<Record<string, readonly string[]>> = {
  'ag-ui': ['@ag-ui/encoder', '@ag-ui/core'],
  a2a: ['@a2a-js/sdk', 'express'],
  mastra: ['@mastra/core', '@mastra/hono', 'hono', '@hono/node-server', 'zod'],
  langgraph: [
    '@langchain/langgraph-api',
    '@langchain/langgraph',
    '@langchain/core',
    '@langchain/langgraph-checkpoint',
    '@langchain/langgraph-sdk',
    'typescript',
    'zod',
  ],
};

/** Installs into an empty folder. Without scripts, which would build here what is downloaded ready elsewhere. */
async function weigh(folder: string, wanted: readonly string[]): Promise<Figures> {
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"private": true}');
  const flags = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps'];
  await run('npm', ['install', ...flags, ...wanted], { cwd: folder });
  const { packages } = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8'));
  return { 'MB installed': bytes(join(folder, 'node_modules')) / 1_000_000, packages: Object.keys(packages).length };
}

const bytes = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);

async function find(): Promise<ReadonlyMap<string, Figures>> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-size-'));
  try {
    await run('npm', ['pack', '--pack-destination', folder], { cwd: root });
    const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
    const rows = new Map([['rivulet-memory', await weigh(join(folder, 'rivulet'), [join(folder, tarball)])]]);
    rows.set('fastify', await weigh(join(folder, 'fastify'), ['fastify@5.12.8']));
    for (const [id, names] of Object.entries(peers)) {
      rows.set(
        id,
        await weigh(
          join(folder, id),
          names.map((name) => `${name}@${dependencies[name]}`),
        ),
      );
    }
    return rows;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export const size: Found[] = [
  {
    name: 'Installed size',
    group: 'size',
    about:
      'What `npm install --omit=dev` puts into an empty folder, without what install scripts would build. Rivulet is the packed package, with all of its stores.',
    columns: [
      { name: 'MB installed', digits: 1 },
      { name: 'packages', digits: 0 },
    ],
    find,
  },
];
