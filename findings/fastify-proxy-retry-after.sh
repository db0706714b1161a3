#!/usr/bin/env bash
# @fastify/http-proxy 11.6.3, with @fastify/reply-from 12.6.5, sends a GET that is answered with 503 ten times more.
#
# Expected: a proxy passes a 503 and its `Retry-After` on, so that the client waits, as http-proxy-3 1.23.3 does. A proxy that tries
# again by itself waits for as long as the header says, and `maxRetriesOn503: 0` turns that off.
# Seen: the server is asked 11 times before the client has its answer. `Retry-After` counts as milliseconds, so with a value of 5
# seconds that takes a tenth of a second; without the header, random pauses make it about a second. `maxRetriesOn503: 0` means 10.
# A POST is sent once.
# So: pass `retryMethods: []`. A server that refuses requests for overload gets eleven times as many of them behind this proxy, and
# each stream that comes back during a restart counts eleven times.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @fastify/http-proxy@11.6.3 @fastify/reply-from@12.6.5 fastify@5.12.8 http-proxy-3@1.23.3
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import fastifyProxy from '@fastify/http-proxy';
import fastify from 'fastify';
import httpProxy from 'http-proxy-3';

const host = '127.0.0.1';
const listen = async (handler) => {
  const server = createServer(handler).listen(0, host);
  await once(server, 'listening');
  return server.address().port;
};
let asked = 0;
// Refuses each request. The path is the value of Retry-After.
const upstream = `http://${host}:${await listen((request, response) => {
  asked++;
  const after = request.url.slice(1);
  response.writeHead(503, after === 'none' ? {} : { 'retry-after': after }).end();
})}`;
const open = async (options) => {
  const app = fastify();
  app.register(fastifyProxy, { upstream, ...options });
  await app.listen({ port: 0, host });
  return app.server.address().port;
};
const proxy = httpProxy.createProxyServer({ target: upstream });
const ports = {
  'http-proxy-3': await listen((request, response) => void proxy.web(request, response)),
  '@fastify/http-proxy': await open({}),
  'maxRetriesOn503: 0': await open({ replyOptions: { maxRetriesOn503: 0 } }),
  'retryMethods: []': await open({ retryMethods: [] }),
};
const seen = [];
for (const [name, port] of Object.entries(ports)) {
  const counts = [];
  for (const [method, after] of [['GET', '5'], ['GET', 'none'], ['POST', '5']]) {
    asked = 0;
    const begin = performance.now();
    const { status } = await fetch(`http://${host}:${port}/${after}`, { method });
    const waited = performance.now() - begin < 5_000 ? '' : ' in 5 s or more';
    counts.push(`${method} ${after} ${status} after ${asked}${waited}`);
  }
  seen.push(`${name}: ${counts.join(', ')}`);
}
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 40 node show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = 'http-proxy-3: GET 5 503 after 1, GET none 503 after 1, POST 5 503 after 1; @fastify/http-proxy: GET 5 503 after 11, GET none 503 after 11, POST 5 503 after 1; maxRetriesOn503: 0: GET 5 503 after 11, GET none 503 after 11, POST 5 503 after 1; retryMethods: []: GET 5 503 after 1, GET none 503 after 1, POST 5 503 after 1' ]
