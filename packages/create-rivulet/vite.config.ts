import { defineConfig } from 'vite';

/** One file without dependencies: `npm create rivulet` has nothing else to load. */
export default defineConfig({
  build: { ssr: 'src/main.ts', target: 'node20', minify: false, outDir: 'dist', emptyOutDir: true },
});
