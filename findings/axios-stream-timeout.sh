#!/usr/bin/env bash
# axios 1.21.1: `timeout` cuts streams off, by silence or by age, according to the adapter, and one of them blames the server.
#
# Expected: a time limit of a call that streams is the time to the headers of its answer, as in ky and in openai, or one that
# is called after the body; and a call that its own client ends says so, with ECONNABORTED or ETIMEDOUT.
# Seen: the adapter for Node, `http`, breaks a stream off that is silent for that long, with ECONNRESET and "aborted", which is
# also what a crash of the server gives. The adapter `fetch` breaks off each stream that is older than that, while its
# events flow, with ETIMEDOUT. So the same options read a stream to its end in Node, and half of it in Deno, Bun and workers.
# ky 1.14.3 and got 14.6.6 (`timeout.response`) read both streams to their ends.
# So: `timeout: 0` for streams, and a limit for silence of your own. A server whose clients report resets at round times looks at
# their time limit first, and sends its comments more often than that.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund axios@1.21.1 ky@1.14.3 got@14.6.6
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import axios from 'axios';
import got from 'got';
import ky from 'ky';

/** Serves the last event after four seconds: in silence, after one event a fifth of a second, or never as it breaks off. */
const server = createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n');
  const timer = request.url === '/busy' && setInterval(() => response.write('data: next\n\n'), 200);
  setTimeout(() => {
    clearInterval(timer);
    response.end('data: last\n\n');
  }, 4_000);
  if (request.url === '/crash') setTimeout(() => response.destroy(), 500);
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');

const timeout = 1_500;
const responseType = 'stream';
const clients = {
  'axios, http': async (url) => (await axios.get(url, { responseType, timeout })).data,
  'axios, fetch': async (url) => (await axios.get(url, { responseType, timeout, adapter: 'fetch' })).data,
  ky: async (url) => (await ky(url, { timeout, retry: 0 })).body,
  got: async (url) => got.stream(url, { timeout: { response: timeout }, retry: { limit: 0 } }),
};
const decoder = new TextDecoder();
async function read(open, path) {
  let text = '';
  try {
    const body = await open(`http://127.0.0.1:${server.address().port}${path}`);
    for await (const chunk of body) text += decoder.decode(chunk);
  } catch ({ code, message }) {
    return `${code} ${message}`;
  }
  return text.includes('last') ? 'whole' : 'cut off';
}
for (const [name, open] of Object.entries(clients))
  console.log(`${name}: silent ${await read(open, '/silent')}, busy ${await read(open, '/busy')}`);
console.log(`axios, http, crash: ${await read(clients['axios, http'], '/crash')}`);
process.exit(0);
JS
seen=$(timeout 90 node show.mjs | paste -sd ';')
echo "Node $(node -v): $seen"
[ "$seen" = 'axios, http: silent ECONNRESET aborted, busy whole;axios, fetch: silent ETIMEDOUT timeout of 1500ms exceeded, busy ETIMEDOUT timeout of 1500ms exceeded;ky: silent whole, busy whole;got: silent whole, busy whole;axios, http, crash: ECONNRESET aborted' ]
