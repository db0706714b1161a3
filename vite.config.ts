import { defineConfig } from 'vite';
import { guide } from './src/playground/guide/guide-plugin.ts';

const server = process.env.RIVULET_URL ?? 'http://127.0.0.1:8000';

/** The playground, the page at `/docs`, and those below `/docs/guide`. `npm run dev:playground` serves it with hot reload, on top of a server at 127.0.0.1:8000. */
export default defineConfig({
  root: 'src/playground',
  // Relative, so that the page works under whatever prefix it is served.
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [guide(import.meta.dirname)],
  build: {
    outDir: '../../dist/playground',
    rolldownOptions: {
      input: ['src/playground/index.html', 'src/playground/docs.html', 'src/playground/guide.html'],
      // A warning that only says how busy the machine is.
      checks: { pluginTimings: false },
    },
    // The API reference is one file of 3.5 MB. Only the page at `/docs` loads it.
    chunkSizeWarningLimit: 4_000,
    emptyOutDir: true,
    // The policy that the page is served under wants its scripts from files.
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  server: {
    // What the server answers, and nothing that begins like it: the page has modules of such names.
    proxy: {
      '^/(agents|runs|sessions|resources|ping|docs|openapi\\.json)([/?]|$)': {
        target: server,
        changeOrigin: true,
        // The server takes its own pages only, and this one comes from Vite's address.
        headers: { origin: new URL(server).origin },
      },
    },
  },
});
