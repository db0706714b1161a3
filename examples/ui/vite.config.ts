import { defineConfig, type ProxyOptions } from 'vite';

/** Ends the stream of a server that has crashed. Vite's proxy alone would hold it open. */
const configure: ProxyOptions['configure'] = (proxy) => {
  proxy.on('proxyRes', (answer, _request, response) => {
    answer.on('close', () => answer.complete || response.destroy());
  });
};

// The pages and the agents need the same origin; `RIVULET_URL` is the server of the agents.
const agents = process.env.RIVULET_URL ?? 'http://127.0.0.1:8000';
// The server accepts requests of its own origin only, so the proxy sends that.
const proxied = { target: agents, changeOrigin: true, headers: { origin: new URL(agents).origin }, configure };

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: '../../node_modules/.vite/examples-ui',
  server: { proxy: { '/runs': proxied, '/agents': proxied, '/ai/': proxied } },
});
