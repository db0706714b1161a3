import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { newFolder } from '../support/folder.ts';

const check = (...args: string[]) => spawnSync(process.execPath, ['.ci/licenses.mjs', ...args], { encoding: 'utf8' });

it('every package that comes with rivulet has a licence on the list', () => {
  const { status, stdout, stderr } = check();
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^\d{2,} production packages, 0 with/);
});

it('the check names each package whose licence is not on the list, and passes over those for development', () => {
  const folder = newFolder(onTestFinished);
  const lock = join(folder, 'lock.json');
  const packages = {
    '': { license: 'GPL-3.0' },
    'node_modules/free': { license: '(GPL-3.0 OR MIT)' },
    'node_modules/both': { license: 'MIT AND GPL-3.0' },
    'node_modules/none': {},
    'node_modules/tool': { license: 'GPL-3.0', dev: true },
  };
  writeFileSync(lock, JSON.stringify({ packages }));
  const { status, stderr } = check(lock);
  expect(status).toBe(1);
  expect(stderr).toBe(
    'node_modules/both: MIT AND GPL-3.0 is not on the list\nnode_modules/none: no licence is not on the list\n',
  );
});
