#!/usr/bin/env bash
# eventsource 4.1.0 and @microsoft/fetch-event-source 2.0.1 refuse an event stream whose media type has capitals.
#
# Expected: the names of media types have no case (RFC 9110, 8.3.1), so `Text/Event-Stream` is an event stream.
# Seen: eventsource 4.1.0 fails for good, and fetch-event-source asks again and again; eventsource-client 1.2.0 and
# launchdarkly-eventsource 2.2.0 read it.
# So: a server, and a proxy that sets the header, has to write `text/event-stream` exactly so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund eventsource@4.1.0 @microsoft/fetch-event-source@2.0.1 eventsource-client@1.2.0 \
  launchdarkly-eventsource@2.2.0
cat > show.mjs <<'JS'
import { createServer } from 'node:http';
import fetching from '@microsoft/fetch-event-source';
import { EventSource } from 'eventsource';
import { createEventSource } from 'eventsource-client';
import launchDarkly from 'launchdarkly-eventsource';

// What fetch-event-source needs of a page.
globalThis.window = globalThis;
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };

const server = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'Text/Event-Stream' });
  response.write('data: hello\n\n');
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${server.address().port}/`;

/** Each opens a stream, and calls back with its first event, or its failure. */
const clients = {
  eventsource: (end) => {
    const source = new EventSource(url);
    source.onmessage = ({ data }) => end(data);
    source.onerror = () => end(source.readyState === 2 ? 'fails for good' : 'tries again');
    return () => source.close();
  },
  'fetch-event-source': (end) => {
    const left = new AbortController();
    const onmessage = ({ data }) => end(data);
    const onerror = ({ message }) => end(message.slice(0, 21));
    fetching.fetchEventSource(url, { signal: left.signal, onmessage, onerror }).catch(() => {});
    return () => left.abort();
  },
  'eventsource-client': (end) => {
    const source = createEventSource({ url, onMessage: ({ data }) => end(data) });
    return () => source.close();
  },
  'launchdarkly-eventsource': (end) => {
    const source = new launchDarkly.EventSource(url);
    source.onmessage = ({ data }) => end(data);
    return () => source.close();
  },
};
const seen = [];
for (const [name, open] of Object.entries(clients)) {
  let close;
  const first = await new Promise((resolve) => (close = open(resolve)));
  close();
  seen.push(`${name}: ${first}`);
}
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 60 node show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = 'eventsource: fails for good; fetch-event-source: Expected content-type; eventsource-client: hello; launchdarkly-eventsource: hello' ]
