/** The size of an installation. */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { killAtExit } from '../cleanup.ts';
import type { Figures, MeasuredOnce } from '../work.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const dependenciesOf = (path: string): Record<string, string> =>
  JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).dependencies;
const versions = { ...dependenciesOf('../../package.json'), ...dependenciesOf('../package.json') };

async function npm(cwd: string, ...args: string[]): Promise<void> {
  const running = promisify(execFile)('npm', args, { cwd });
  killAtExit(running.child);
  await running;
}

/** The packages that the documentation of each contestant tells to install for a server like that of the bench. */
const others: Readonly<Record<string, readonly string[]>> = {
  fastify: ['fastify'],
  'ag-ui': ['@ag-ui/encoder', '@ag-ui/core', 'zod', 'fastify'],
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

/** Installs into an empty folder, without install scripts: they would build here what other platforms download. */
async function measureSize(folder: string, wanted: readonly string[]): Promise<Figures> {
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"private": true}');
  const flags = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps'];
  await npm(folder, 'install', ...flags, ...wanted);
  const { packages } = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8'));
  return { 'MB installed': bytes(join(folder, 'node_modules')) / 1_000_000, packages: Object.keys(packages).length };
}

const bytes = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);

async function find(parent: string): Promise<ReadonlyMap<string, Figures>> {
  const folder = join(parent, 'size');
  mkdirSync(folder);
  await npm(root, 'pack', '--pack-destination', folder);
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
  const rows = new Map([['Rivulet', await measureSize(join(folder, 'rivulet'), [join(folder, tarball)])]]);
  for (const [id, names] of Object.entries(others)) {
    const wanted = names.map((name) => `${name}@${versions[name]}`);
    rows.set(id, await measureSize(join(folder, id), wanted));
  }
  return rows;
}

export const size: MeasuredOnce[] = [
  {
    name: 'Installed size',
    group: 'size',
    about:
      'The files that `npm install --omit=dev` writes into an empty folder, without install scripts. Rivulet is the packed package, with all of its stores; Fastify is without plugins.',
    columns: [
      { name: 'MB installed', digits: 1 },
      { name: 'packages', digits: 0 },
    ],
    find,
  },
];
