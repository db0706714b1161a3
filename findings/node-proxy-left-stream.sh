#!/usr/bin/env bash
# http-proxy 1.18.1, http-proxy-middleware 2.0.12 and h3 1.15.11 keep a stream of the server behind them when its client has left.
#
# Expected: where a client closes its connection, a proxy closes its own to the server, at the latest with the next event.
# Seen: the stream of the server stays open, idle or with ten events a second, which are thrown away. http-proxy waits for
# `aborted` of the request, which Node does not emit for a request whose body it has read. h3 writes on to the closed answer.
# http-proxy-3 1.23.3, http-proxy-middleware 3.0.11 and h3 2.0.8 close it.
# So: behind webpack-dev-server 5, which has http-proxy-middleware 2, and behind `proxyRequest` of Nitro 2, a server has
# readers that are long gone, counts them to its limits, and cancels nothing for lack of readers. In http-proxy, this helps:
# `proxy.on('proxyReq', (to, _, response) => response.on('close', () => to.destroy()))`; in h3 1, `fetchOptions.signal` does.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund http-proxy@1.18.1 http-proxy-3@1.23.3 middleware2@npm:http-proxy-middleware@2.0.12 \
  middleware3@npm:http-proxy-middleware@3.0.11 h3-1@npm:h3@1.15.11 h3-2@npm:h3@2.0.8
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import * as h3 from 'h3-1';
import { H3, proxyRequest } from 'h3-2';
import { toNodeHandler } from 'h3-2/node';
import httpProxy from 'http-proxy';
import httpProxy3 from 'http-proxy-3';
import { createProxyMiddleware as middleware2 } from 'middleware2';
import { createProxyMiddleware as middleware3 } from 'middleware3';

const host = '127.0.0.1';
const listen = async (handler) => {
  const server = createServer(handler).listen(0, host);
  await once(server, 'listening');
  return server.address().port;
};
let stream;
const target = `http://${host}:${await listen((request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: hello\n\n');
  const timer = request.url === '/busy' && setInterval(() => response.write('data: more\n\n'), 100);
  response.on('close', () => clearInterval(timer));
  stream = response;
})}`;

const forward = (proxy) => {
  proxy.on('error', () => {});
  return listen((request, response) => void proxy.web(request, response));
};
/** Each opens a proxy, and returns its port. */
const proxies = {
  none: () => new URL(target).port,
  'http-proxy': () => forward(httpProxy.createProxyServer({ target })),
  'http-proxy-middleware 2': () => listen(middleware2({ target, logLevel: 'silent' })),
  'h3 1': () => listen(h3.toNodeListener(h3.createApp().use(h3.eventHandler((event) => h3.proxyRequest(event, target + event.path))))),
  'http-proxy-3': () => forward(httpProxy3.createProxyServer({ target })),
  'http-proxy-middleware 3': () => listen(middleware3({ target })),
  'h3 2': () => listen(toNodeHandler(new H3().all('/**', (event) => proxyRequest(event, target + event.url.pathname)))),
};
const seen = [];
for (const [name, open] of Object.entries(proxies)) {
  const port = await open();
  const ends = [];
  for (const path of ['/idle', '/busy']) {
    const request = get({ host, port, path, agent: false });
    const [answer] = await once(request, 'response');
    await once(answer, 'data');
    answer.on('error', () => {});
    const closed = once(stream, 'close').then(() => 'closed');
    request.destroy();
    ends.push(await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 3_000, 'open'))]));
  }
  seen.push(`${name}: ${ends.join(', ')}`);
}
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 60 node show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = 'none: closed, closed; http-proxy: open, open; http-proxy-middleware 2: open, open; h3 1: open, open; http-proxy-3: closed, closed; http-proxy-middleware 3: closed, closed; h3 2: closed, closed' ]
