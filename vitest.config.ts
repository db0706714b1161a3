import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: {
    // Tests, agents and examples say `rivulet`, as users do, and get the sources.
    alias: [
      { find: /^rivulet$/, replacement: fileURLToPath(new URL('./src/index.ts', import.meta.url)) },
      { find: /^rivulet\/react$/, replacement: fileURLToPath(new URL('./src/react/use-run.ts', import.meta.url)) },
      { find: /^rivulet\/client$/, replacement: fileURLToPath(new URL('./src/client/client.ts', import.meta.url)) },
      { find: /^rivulet\/testing$/, replacement: fileURLToPath(new URL('./src/testing/testing.ts', import.meta.url)) },
    ],
  },
  test: {
    // What needs a browser for long has a command of its own, `npm run test:browser`; and so has what kills servers and
    // processes and waits for leases and time-outs that are real, `npm run test:servers`.
    projects: [
      { extends: true, test: { name: 'default', include: ['test/**/*.test.ts'] } },
      { extends: true, test: { name: 'browser', include: ['test/**/*.browser.ts'] } },
      { extends: true, test: { name: 'servers', include: ['test/**/*.servers.ts'] } },
    ],
    // What hangs, not what takes long: a machine may be ten times slower than another.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // A poll waits for an event, whenever it comes.
    expect: { poll: { timeout: 120_000, interval: 20 } },
    // Most tests wait for sockets and processes more than they compute.
    maxWorkers: 3,
    // No test changes a module's state, so files may share what they import.
    isolate: false,
    // acp-sdk's ESM entry does not load on Node; going through Vite, it does.
    server: { deps: { inline: ['acp-sdk'] } },
  },
});
