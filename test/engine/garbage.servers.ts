import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const probe = resolve(import.meta.dirname, 'garbage-probe.js');

describe('a run that is final', () => {
  // Seen: getters of its own, or a Map that it had been in, kept each run whole until the next full collection.
  it('leaves nothing behind that only a full collection finds', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [probe]);
    expect(Number(stdout)).toBeLessThan(2_500);
  });
});
