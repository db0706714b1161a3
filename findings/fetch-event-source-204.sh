#!/usr/bin/env bash
# @microsoft/fetch-event-source 2.0.1 never stops after a 204.
#
# Expected: the HTML standard lets a server end an event stream with 204 No Content; an EventSource then stops for good.
# Seen: the client takes the 204 for a broken connection, as it has no content type, and asks again for ever, each time after
# the last `retry:`. A page without `onerror` hears nothing of it, and the promise stays open.
# So: with this client, a page has to throw in `onopen` where `response.status` is 204.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @microsoft/fetch-event-source@2.0.1
cat > show.cjs <<'JS'
const { createServer } = require('node:http');
const { fetchEventSource } = require('@microsoft/fetch-event-source');

// What the package needs of a page.
globalThis.window = globalThis;
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };

let requests = 0;
const server = createServer((_, response) => {
  requests += 1;
  if (requests > 1) return response.writeHead(204).end();
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 20\nid: 1\ndata: all\n\n');
});
server.listen(0, '127.0.0.1', () => {
  const left = new AbortController();
  const seen = [];
  let ended = 'open';
  fetchEventSource(`http://127.0.0.1:${server.address().port}/`, {
    signal: left.signal,
    onmessage: ({ data }) => seen.push(data),
    // The first answer ends: ask for the rest.
    onclose: () => {
      throw new Error('the rest');
    },
  }).then(
    () => (ended = 'resolved'),
    () => (ended = 'rejected'),
  );
  const wait = setInterval(() => {
    // The first request, the one that 204 should have ended, and ten more.
    if (requests < 12 && ended === 'open') return;
    clearInterval(wait);
    console.log(`events: ${seen}; requests after the first 204: ${requests < 12 ? 'none' : 'ten and more'}; promise: ${ended}`);
    left.abort();
    server.closeAllConnections();
    server.close();
  }, 20);
});
JS
seen=$(timeout 60 node show.cjs)
echo "@microsoft/fetch-event-source 2.0.1, Node $(node -v): $seen"
[ "$seen" = 'events: all; requests after the first 204: ten and more; promise: open' ]
