import { join } from 'node:path';
import type { Plugin } from 'vitest/config';
import newest from './package.json' with { type: 'json' };

/** Imports of the packages that are installed here get these, instead of the project's own versions. */
export function newestClients(): Plugin {
  return {
    name: 'newest-clients',
    enforce: 'pre',
    resolveId(id, importer, options) {
      if (importer === undefined || importer.includes('/node_modules/')) return null;
      const isNewest = Object.keys(newest.dependencies).some((name) => id === name || id.startsWith(`${name}/`));
      return isNewest
        ? this.resolve(id, join(import.meta.dirname, 'package.json'), { ...options, skipSelf: true })
        : null;
    },
  };
}
