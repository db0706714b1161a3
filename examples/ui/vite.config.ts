import { defineConfig } from 'vite';

// The pages and the agents have to come from one address; `RIVULET_URL` names where the agents really are.
const agents = process.env.RIVULET_URL ?? 'http://127.0.0.1:8000';
// The server takes requests of its own pages only, so these are sent as such.
const proxied = { target: agents, changeOrigin: true, headers: { origin: new URL(agents).origin } };

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: '../../node_modules/.vite/examples-ui',
  server: { proxy: { '/runs': proxied, '/agents': proxied } },
});
