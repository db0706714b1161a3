import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
/** The imports that stay external; any other import would be bundled, or fail. */
const external = ['rxjs', 'eventsource-parser'];

describe('the client in a bundle', () => {
  it('has no schemas, and the size that the README claims', async () => {
    const [output] = [
      await build({
        root,
        configFile: false,
        logLevel: 'silent',
        build: {
          write: false,
          minify: true,
          rolldownOptions: {
            input: resolve(root, 'src/client/client.ts'),
            external,
            preserveEntrySignatures: 'strict',
            output: { format: 'es' },
          },
        },
      }),
    ].flat();
    if (output === undefined || !('output' in output)) throw new Error('nothing was built');
    const [chunk, ...others] = output.output;
    expect(others).toEqual([]);
    expect(chunk.imports.toSorted()).toEqual(external.toSorted());
    expect(chunk.code).toContain('createClient');
    expect(chunk.code).not.toMatch(/TypeBox|node:|\bBuffer\b|process\./);
    const size = gzipSync(chunk.code).length;
    expect(size).toBeLessThan(5_300);
    const [, said] = /own code is ([\d.]+) kB/.exec(readFileSync(resolve(root, 'README.md'), 'utf8')) ?? [];
    expect(Math.abs(size / 1000 - Number(said))).toBeLessThan(0.1);
  });
});
