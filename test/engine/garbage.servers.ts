import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const probe = resolve(import.meta.dirname, 'garbage-probe.js');

describe('a run that is final', () => {
  // Seen: getters of its own, or a Map that it had been in, kept each run whole until the next full collection.
  it('leaves nothing behind that only a full collection finds', async () => {
    let left = Number.POSITIVE_INFINITY;
    // Each process is another sample: when V8 optimizes a function changes what is kept. Most of them keep 2,900 bytes a
    // run, some 1,100; all of them keep 4,000 or more where the runs are in a plain Map.
    for (let processes = 0; processes < 8 && !(left < 3_500); processes += 1)
      left = Number((await promisify(execFile)(process.execPath, [probe])).stdout);
    expect(left).toBeLessThan(3_500);
  });
});
