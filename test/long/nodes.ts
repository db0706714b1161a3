/**
 * The default suite on the Nodes that Rivulet supports, from the oldest to the newest: `npm run test:nodes`. Some two
 * minutes for each. Arguments are paths, and only their tests are run: `.ci/run` names those of streams and SQLite, which
 * depend most on the Node. Each Node comes as an npm package, into a temporary folder.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';

/** The oldest of each line that `engines` allows, and where that one is old, a new one: it has an SQLite of its own. */
const versions = ['20.19.0', '22.12.0', '22.23.3', '24.21.0', '26.10.0'];

const project = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'rivulet-nodes-'));

/** Installs a Node. Returns the folder of its binary. @throws Error where npm cannot get it */
function install(version: string): string {
  const into = join(folder, version);
  const { status, stderr } = spawnSync(
    'npm',
    ['install', '--no-audit', '--no-fund', '--prefix', into, `node@${version}`],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`npm cannot install node@${version}: ${stderr}`);
  return join(into, 'node_modules/node/bin');
}

/** Whether the tests pass on a Node. */
function passes(version: string): boolean {
  const bin = install(version);
  console.log(`== Node ${version}`);
  const { status } = spawnSync(
    join(bin, 'node'),
    ['node_modules/vitest/vitest.mjs', 'run', '--project', 'default*', ...process.argv.slice(2)],
    { cwd: project, stdio: 'inherit', env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` } },
  );
  return status === 0;
}

try {
  const failed = versions.filter((version) => !passes(version));
  console.log(failed.length === 0 ? `passed on Node ${versions.join(', ')}` : `failed on Node ${failed.join(', ')}`);
  process.exitCode = failed.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
