#!/usr/bin/env bash
# Vite 8.4.0, http-proxy 1.18.1, http-proxy-3 1.23.3 and http-proxy-middleware 3.0.11 keep a client's stream open when the
# server behind them is gone.
#
# Expected: where a server breaks off an answer, as when it crashes, a proxy breaks off its own, so that the client comes back.
# Seen: the events stop, and the connection to the client stays open and silent. No `error` is emitted. An EventSource stays in
# state 1 (OPEN), minutes later too, and a fetch reads on. httpxy 0.5.6, which http-proxy-middleware 4 uses, passes the
# breakage on.
# So: a client behind such a proxy needs a limit of its own for silence. In Vite, http-proxy and http-proxy-3, this helps:
# `proxy.on('proxyRes', (from, _, to) => from.on('close', () => from.complete || to.destroy()))`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund vite@8.4.0 http-proxy@1.18.1 http-proxy-3@1.23.3 http-proxy-middleware@3.0.11 \
  httpxy@0.5.6
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import httpProxy from 'http-proxy';
import httpProxy3 from 'http-proxy-3';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { createProxyServer } from 'httpxy';
import { createServer as createVite } from 'vite';

const address = '127.0.0.1';
const listen = async (handler) => {
  const server = createServer(handler).listen(0, address);
  await once(server, 'listening');
  return server.address().port;
};
let stream;
const target = `http://${address}:${await listen((_, response) => {
  stream = response;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write('data: hello\n\n');
})}`;

/** A proxy that ends the client's connection where it is told of an error. */
const forward = (proxy) => {
  proxy.on('error', (_error, _request, response) => response.destroy());
  return listen((request, response) => void proxy.web(request, response));
};
/** Each opens a proxy, and returns its port. */
const proxies = {
  none: () => new URL(target).port,
  vite: async () => {
    const server = { host: address, port: 0, proxy: { '/': target } };
    const vite = await createVite({ configFile: false, logLevel: 'silent', server });
    await vite.listen();
    return vite.httpServer.address().port;
  },
  'http-proxy': () => forward(httpProxy.createProxyServer({ target })),
  'http-proxy-3': () => forward(httpProxy3.createProxyServer({ target })),
  'http-proxy-middleware': () => listen(createProxyMiddleware({ target })),
  httpxy: () => forward(createProxyServer({ target })),
};
const seen = [];
for (const [name, open] of Object.entries(proxies)) {
  const [answer] = await once(get({ host: address, port: await open(), path: '/', agent: false }), 'response');
  await once(answer, 'data');
  stream.destroy();
  const end = new Promise((resolve) => answer.on('error', () => resolve('broken')).on('end', () => resolve('ended')).resume());
  const wait = new Promise((resolve) => setTimeout(resolve, 5_000, 'open'));
  seen.push(Promise.race([end, wait]).then((state) => `${name}: ${state}`));
}
console.log((await Promise.all(seen)).join('; '));
process.exit(0);
JS
seen=$(timeout 60 node show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = 'none: broken; vite: open; http-proxy: open; http-proxy-3: open; http-proxy-middleware: open; httpxy: broken' ]
