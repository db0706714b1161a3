import { readFileSync } from 'node:fs';

/** Rivulet's version, from the package that it was installed as. */
export const version = (): string =>
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version;
