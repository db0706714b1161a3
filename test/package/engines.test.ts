import { readFileSync } from 'node:fs';
import { satisfies } from 'semver';
import { describe, expect, it } from 'vitest';
import rivulet from '../../package.json' with { type: 'json' };

interface Locked {
  readonly version?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly engines?: { readonly node?: string };
}

/** The lowest versions of Node that `engines` promises, and the latest of each line that is supported. */
const versions = ['20.19.0', '22.12.0', '24.0.0', '26.0.0'];

const lock: { packages: Record<string, Locked> } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const packages = Object.entries(lock.packages).filter(([path]) => path.startsWith('node_modules/'));
const refusing = (found: typeof packages): string[] =>
  found.flatMap(([path, { version, engines }]) =>
    versions
      .filter((node) => !satisfies(node, engines?.node ?? '*'))
      .map((node) => `${path}@${version} does not support Node ${node}, only ${engines?.node}`),
  );

describe('the versions of Node in package.json', () => {
  it('are supported by every package that is installed with Rivulet', () => {
    const installed = packages.filter(([, { dev, optional }]) => dev !== true && optional !== true);
    expect(installed.length).toBeGreaterThan(80);
    expect(refusing(installed)).toEqual([]);
  });

  it('are supported by every package that the project needs for its development', () => {
    expect(refusing(packages.filter(([, { optional }]) => optional !== true))).toEqual([]);
  });

  it('are those of the test, and of create-rivulet', () => {
    expect(rivulet.engines.node).toBe('>=20.19');
    expect(lock.packages['packages/create-rivulet']?.engines?.node).toBe(rivulet.engines.node);
  });
});
