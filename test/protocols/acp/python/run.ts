/**
 * ACP's own Python client against two servers: `npm run test:acp-python`. It installs `acp-sdk` from PyPI into a virtual
 * environment, for which `python3` has to be 3.11 or newer. With `ACP_PYTHON=/path/to/python`, it takes an interpreter that
 * has the client already. `checks.py` prints a line for each check; one that fails, fails the command.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createServer } from '../../../../src/index.ts';
import { agents } from './agents.ts';

const folder = import.meta.dirname;
const version = '1.0.3';
const environment = join(folder, '.venv');

function run(command: string, args: readonly string[], stdio: 'inherit' | 'ignore' = 'inherit'): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio });
    child.on('error', reject);
    child.on('exit', (code) => resolve(code === 0));
  });
}

/** The interpreter of an environment that has the client. */
async function installed(): Promise<string> {
  const python = join(environment, 'bin/python');
  if (existsSync(python) && (await run(python, ['-c', 'import acp_sdk'], 'ignore'))) return python;
  if (!(await run('python3', ['-m', 'venv', '--clear', environment]))) {
    throw new Error('python3 -m venv failed: expected Python 3.11 or newer, with its modules venv and ensurepip');
  }
  if (await run(python, ['-m', 'pip', 'install', '--quiet', `acp-sdk==${version}`])) return python;
  throw new Error(
    `acp-sdk ${version} could not be installed: expected Python 3.11 or newer, and PyPI to be reachable. ` +
      'ACP_PYTHON takes the path of a Python that has the client already',
  );
}

const python = process.env.ACP_PYTHON ?? (await installed());
const serve = () =>
  createServer({
    agents,
    playground: false,
    docs: false,
    heartbeat: 20,
    foreign: { allowNetworks: ['127.0.0.0/8'] },
    limits: { shutdownGrace: 0, cancelGrace: 100 },
  });
const apps = [await serve(), await serve()];
try {
  const urls = await Promise.all(apps.map((app) => app.listen({ port: 0, host: '127.0.0.1' })));
  if (!(await run(python, [join(folder, 'checks.py'), ...urls]))) process.exitCode = 1;
} finally {
  await Promise.all(apps.map((app) => app.close()));
}
