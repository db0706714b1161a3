/** The machine and the versions of a measurement. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { cpus, release, type } from 'node:os';
import { fileURLToPath } from 'node:url';

const packages = ['fastify', 'rxjs', '@photostructure/sqlite', 'ioredis', 'pg'];
const peers = [
  '@ag-ui/encoder',
  '@a2a-js/sdk',
  '@mastra/core',
  '@mastra/hono',
  '@langchain/langgraph-api',
  '@langchain/langgraph',
];

function versions(folder: string, names: readonly string[]): string[] {
  return names.flatMap((name) => {
    const path = fileURLToPath(new URL(`${folder}/node_modules/${name}/package.json`, import.meta.url));
    return existsSync(path) ? [`${name} ${JSON.parse(readFileSync(path, 'utf8')).version}`] : [];
  });
}

const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim();

/** The measured commit, with a `+` if the files differ from it. */
export function commit(): string {
  return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', 'src', 'bench', 'package-lock.json') === '' ? '' : '+'}`;
}

export function machine(where = 'The server has core 0, the load core 1.', more: readonly string[] = peers): string {
  const cores = cpus();
  const names = [...versions('..', packages), ...versions('.', more)].join(', ');
  return `${cores.length} × ${cores[0]?.model.trim()}, ${type()} ${release()}, Node ${process.versions.node}; ${names}. ${where}`;
}
