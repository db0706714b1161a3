import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { InputHistory } from '../../src/cli/terminal/input.ts';
import { newFolder } from '../support/folder.ts';

function stateFolder(): string {
  const folder = newFolder(onTestFinished);
  return folder;
}

it('keeps what was typed, newest first, readable by its user only', () => {
  const XDG_STATE_HOME = stateFolder();
  const history = new InputHistory({ XDG_STATE_HOME });
  history.add('one');
  history.add('two\nlines\n');
  expect(history.lines).toEqual(['lines', 'two', 'one']);
  expect(new InputHistory({ XDG_STATE_HOME }).lines).toEqual(['lines', 'two', 'one']);
  expect(statSync(join(XDG_STATE_HOME, 'rivulet/history')).mode & 0o077).toBe(0);
});

it('is bounded', () => {
  const XDG_STATE_HOME = stateFolder();
  const history = new InputHistory({ XDG_STATE_HOME });
  for (let line = 0; line < 600; line += 1) history.add(String(line));
  history.add('x'.repeat(2_001));
  expect([history.lines.length, history.lines[0]]).toEqual([500, '599']);
  const path = join(XDG_STATE_HOME, 'rivulet/history');
  writeFileSync(path, 'line\n'.repeat(2_000));
  expect(new InputHistory({ XDG_STATE_HOME }).lines).toHaveLength(500);
  expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(501);
});

it('is empty where its folder cannot be used', () => {
  const history = new InputHistory({ XDG_STATE_HOME: '/dev/null' });
  history.add('one');
  expect(history.lines).toEqual(['one']);
});
