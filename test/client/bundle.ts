import { resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';

const root = resolve(import.meta.dirname, '../..');

/** A file of the client as a bundler of a page makes it. Imports that are not external are bundled, or fail. */
export async function bundleOf(file: string, external: string[] = []) {
  const [output] = [
    await build({
      root,
      configFile: false,
      logLevel: 'silent',
      build: {
        write: false,
        minify: true,
        rolldownOptions: {
          input: resolve(root, 'src/client', file),
          external,
          preserveEntrySignatures: 'strict',
          output: { format: 'es' },
        },
      },
    }),
  ].flat();
  if (output === undefined || !('output' in output)) throw new Error('nothing was built');
  const [{ code, imports }, ...others] = output.output;
  return { code, imports, others, size: gzipSync(code).length };
}
