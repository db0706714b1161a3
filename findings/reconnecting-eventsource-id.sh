#!/usr/bin/env bash
# reconnecting-eventsource 1.6.5 forgets the last id where a page listens by `onmessage`, and calls `onmessage` twice beside a
# listener.
#
# Expected: it has the interface of an EventSource and wraps one, so both ways to listen are equal. After an answer that ends an
# EventSource for good, such as the 503 of a restart, it goes on after the last event.
# Seen: it takes the id of an event only where the page has called `addEventListener` for the type of the event. With `onmessage`
# alone, it comes back without an id after a 503, and the page gets all events again. With `addEventListener` it comes back with
# the id, in the query as `lastEventId` and in no header; the query stays as it is, and beside it a newer `Last-Event-ID` comes
# with the next break. A page that sets `onmessage` and adds a listener for `message`, too, gets each event twice by `onmessage`.
# So: with this client, add listeners and leave `onmessage` alone. A server takes `lastEventId` from the query where there is no
# header, and the header where there are both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund reconnecting-eventsource@1.6.5 eventsource@5.1.5
cat > show.cjs <<'JS'
const { once } = require('node:events');
const { createServer } = require('node:http');
const { EventSource } = require('eventsource');
const ReconnectingEventSource = require('reconnecting-eventsource').default;

/** How a page listens. */
const pages = {
  onmessage: (source, take) => {
    source.onmessage = ({ data }) => take(data);
  },
  addEventListener: (source, take) => source.addEventListener('message', ({ data }) => take(data)),
  both: (source, take) => {
    source.onmessage = ({ data }) => take(data);
    source.addEventListener('message', () => {});
  },
};

(async () => {
  for (const [name, listen] of Object.entries(pages)) {
    const asked = [];
    const server = createServer(({ url, headers }, response) => {
      const query = new URL(url, 'http://server').searchParams.get('lastEventId');
      const header = headers['last-event-id'];
      asked.push(`query ${query ?? 'none'}, header ${header ?? 'none'}`);
      if (asked.length === 2) return response.writeHead(503).end();
      if (asked.length === 4) return response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      // Four events, two in each connection.
      const next = Number(header ?? query ?? 0) + 1;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`retry: 10\nid: ${next}\ndata: ${next}\n\nid: ${next + 1}\ndata: ${next + 1}\n\n`);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${server.address().port}/`;
    const source = new ReconnectingEventSource(url, { eventSourceClass: EventSource, max_retry_time: 10 });
    const got = [];
    listen(source, (data) => got.push(data));
    while (asked.length < 4) await once(server, 'request');
    source.close();
    console.log(`${name}: ${got}; after 503: ${asked[2]}; after a break: ${asked[3]}`);
  }
  process.exit(0);
})();
JS
seen=$(timeout 40 node show.cjs)
echo "Node $(node -v)"
echo "$seen"
[ "$seen" = 'onmessage: 1,2,1,2; after 503: query none, header none; after a break: query none, header 2
addEventListener: 1,2,3,4; after 503: query 2, header none; after a break: query 2, header 4
both: 1,1,2,2,3,3,4,4; after 503: query 2, header none; after a break: query 2, header 4' ]
