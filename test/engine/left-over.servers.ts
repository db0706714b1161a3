import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('a promise that a run leaves behind does not end the process, while Node ends it for any other that is rejected', async () => {
  const args = [resolve(import.meta.dirname, 'left-over-probe.mjs')];
  await expect(promisify(execFile)(process.execPath, args)).rejects.toMatchObject({
    code: 1,
    stdout: 'completed cancelled\ncompleted cancelled\nalive\n',
    stderr: expect.stringContaining('Error: stray'),
  });
});
