import { readFileSync } from 'node:fs';

let found: string | undefined;

/** Rivulet's version, from the package that it was installed as. */
export function version(): string {
  found ??= String(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version);
  return found;
}
