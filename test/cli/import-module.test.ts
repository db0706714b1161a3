import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { importModule } from '../../src/cli/serving/import-module.ts';
import { terminal } from '../../src/cli/terminal/terminal.ts';
import { makeProject } from '../support/project.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('names a module that has not loaded within 5 seconds, and goes on waiting for it', async ({ onTestFinished }) => {
  const { folder, remove } = makeProject({
    'agents/slow.mjs': 'await new Promise((resolve) => (globalThis.endOfSlow = resolve));\nexport default 1;\n',
  });
  onTestFinished(remove);
  vi.useFakeTimers();
  const errors = vi.spyOn(terminal, 'error').mockImplementation(() => {});
  const module = importModule(join(folder, 'agents/slow.mjs'), { name: 'agents/slow.mjs', kind: 'agents' });
  vi.advanceTimersByTime(4_999);
  expect(errors).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(errors.mock.calls).toEqual([
    ['rivulet: agents/slow.mjs: has not loaded within 5 s; its top-level await has not settled yet'],
  ]);
  vi.useRealTimers();
  await expect.poll(() => 'endOfSlow' in globalThis).toBe(true);
  Reflect.get(globalThis, 'endOfSlow')();
  expect((await module).default).toBe(1);
});
