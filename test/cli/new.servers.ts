import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text as textIn } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { rivulet } from '../support/command.ts';
import { makeProject } from '../support/project.ts';

const packages = resolve(import.meta.dirname, '../../node_modules');
const vitest = join(packages, 'vitest');

it('rivulet new writes a test that passes', async ({ onTestFinished }) => {
  const { folder: cwd, remove } = makeProject({});
  onTestFinished(remove);
  await rivulet(['new', 'my-first'], { cwd });
  symlinkSync(vitest, join(cwd, 'node_modules/vitest'));
  const args = [join(vitest, 'vitest.mjs'), 'run', '--testTimeout=60000'];
  const testing = spawn(process.execPath, args, { cwd, env: { PATH: process.env.PATH ?? '', NO_COLOR: '1' } });
  const [report, [exitCode]] = await Promise.all([textIn(testing.stdout), once(testing, 'exit')]);
  expect(report).toMatch(/Tests +1 passed \(1\)/);
  expect(exitCode).toBe(0);
});

it('rivulet new writes files that tsc accepts with the options of tsc --init', async ({ onTestFinished }) => {
  const { folder: cwd, remove } = makeProject({});
  onTestFinished(remove);
  await rivulet(['new', 'my-first'], { cwd });
  symlinkSync(vitest, join(cwd, 'node_modules/vitest'));
  const tsc = (option: string) =>
    promisify(execFile)(process.execPath, [join(packages, 'typescript/bin/tsc'), option], { cwd });
  await tsc('--init');
  await expect(tsc('--noEmit')).resolves.toMatchObject({ stdout: '' });
});
