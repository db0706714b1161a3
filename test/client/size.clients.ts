import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bundleOf } from './bundle.ts';

const root = resolve(import.meta.dirname, '../..');
/** The imports that stay external; any other import would be bundled, or fail. */
const external = ['rxjs', 'eventsource-parser'];

describe('the client in a bundle', () => {
  it('has no schemas, and the size that its page of the docs claims', async () => {
    const { code, imports, others, size } = await bundleOf('client.ts', external);
    expect(others).toEqual([]);
    expect(imports.toSorted()).toEqual(external.toSorted());
    expect(code).toContain('createClient');
    expect(code).not.toMatch(/TypeBox|node:|\bBuffer\b|process\./);
    expect(size).toBeLessThan(6_100);
    const [, said] = /own code is ([\d.]+) kB/.exec(readFileSync(resolve(root, 'docs/client.md'), 'utf8')) ?? [];
    expect(Math.abs(size / 1000 - Number(said))).toBeLessThan(0.1);
  });
});

describe('the fetch for clients of the AI SDK in a bundle', () => {
  it('is 1.2 kB, compressed, and imports nothing', async () => {
    const { code, imports, others, size } = await bundleOf('ai-sdk.ts');
    expect([others, imports]).toEqual([[], []]);
    expect(code).toContain('Last-Event-ID');
    expect(size).toBeLessThan(1_250);
  });
});
