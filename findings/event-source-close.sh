#!/usr/bin/env bash
# A listener that closes its event stream gets further events: eventsource 4.1.0, eventsource-client 1.2.0, launchdarkly-eventsource
# 2.2.0, undici 7.30.2, extended-eventsource 2.1.0, event-source-plus 0.1.15 and @microsoft/fetch-event-source 2.0.1.
#
# Expected: after `close()`, or after the abort of its signal, no listener is called. The HTML standard dispatches no event of an
# EventSource that is closed. eventsource 5.1.5 and event-source-polyfill 1.0.31 do so.
# Seen: the clients hand out all events of the piece of the body that they have read, also those after the one whose listener has
# closed the stream. How many that are depends on the network: none where each event comes by itself, as in most tests, and
# dozens where a server sends the history of a run at once.
# So: a page that closes a stream at a question, or to show another chat, ignores by itself what comes later: one flag for each
# stream. Without it, a page that goes on after the last id that it took has those events twice.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund eventsource5@npm:eventsource@5.1.5 eventsource4@npm:eventsource@4.1.0 \
  event-source-polyfill@1.0.31 eventsource-client@1.2.0 launchdarkly-eventsource@2.2.0 undici@7.30.2 \
  extended-eventsource@2.1.0 event-source-plus@0.1.15 @microsoft/fetch-event-source@2.0.1
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import fetching from '@microsoft/fetch-event-source';
import { EventSourcePlus } from 'event-source-plus';
import { EventSource as EventSource4 } from 'eventsource4';
import { EventSource as EventSource5 } from 'eventsource5';
import { createEventSource } from 'eventsource-client';
import { EventSource as ExtendedEventSource } from 'extended-eventsource';
import { EventSource as LaunchDarklyEventSource } from 'launchdarkly-eventsource';
import { EventSource as UndiciEventSource } from 'undici';

const history = Array.from({ length: 5 }, (_, number) => `id: ${number + 1}\ndata: ${number + 1}\n\n`);
const server = createServer(({ url }, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (url === '/at-once') return response.write(history.join(''));
  let sent = 0;
  const timer = setInterval(() => response.write(history[sent++] ?? ': idle\n\n'), 100);
  response.on('close', () => clearInterval(timer));
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const origin = `http://127.0.0.1:${server.address().port}`;

// What two of the clients need of a page.
globalThis.window = Object.assign(globalThis, { addEventListener() {}, removeEventListener() {} });
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };
const { EventSourcePolyfill } = (await import('event-source-polyfill')).default;

const open = (make) => (url, take) => {
  const source = make(url);
  source.onmessage = ({ data }) => take(data, () => source.close());
};
/** Each gives the text of each event to `take`, with what closes the stream. */
const clients = {
  'eventsource 5': open((url) => new EventSource5(url)),
  'event-source-polyfill': open((url) => new EventSourcePolyfill(url)),
  'eventsource 4': open((url) => new EventSource4(url)),
  'launchdarkly-eventsource': open((url) => new LaunchDarklyEventSource(url)),
  undici: open((url) => new UndiciEventSource(url)),
  'extended-eventsource': open((url) => new ExtendedEventSource(url, { disableLogger: true })),
  'eventsource-client': (url, take) => {
    const source = createEventSource({ url, onMessage: ({ data }) => take(data, () => source.close()) });
  },
  'event-source-plus': (url, take) => {
    const controller = new EventSourcePlus(url).listen({ onMessage: ({ data }) => take(data, () => controller.abort()) });
  },
  'fetch-event-source': (url, take) => {
    const controller = new AbortController();
    const onmessage = ({ data }) => take(data, () => controller.abort());
    fetching.fetchEventSource(url, { signal: controller.signal, onmessage });
  },
};
for (const [name, listen] of Object.entries(clients)) {
  const seen = [];
  for (const path of ['one-by-one', 'at-once']) {
    const got = [];
    const [[, response]] = await Promise.all([
      once(server, 'request'),
      new Promise((resolve) => {
        listen(`${origin}/${path}`, (data, close) => {
          got.push(data);
          if (data !== '2') return;
          close();
          resolve();
        });
      }),
    ]);
    // What the client has read is handed out before the server knows that the client has left.
    if (!response.destroyed) await once(response, 'close');
    seen.push(`${path} ${got}`);
  }
  console.log(`${name}: ${seen.join('; ')}`);
}
process.exit(0);
JS
seen=$(timeout 40 node show.mjs 2>/dev/null)
echo "Node $(node -v)"
echo "$seen"
[ "$seen" = 'eventsource 5: one-by-one 1,2; at-once 1,2
event-source-polyfill: one-by-one 1,2; at-once 1,2
eventsource 4: one-by-one 1,2; at-once 1,2,3,4,5
launchdarkly-eventsource: one-by-one 1,2; at-once 1,2,3,4,5
undici: one-by-one 1,2; at-once 1,2,3,4,5
extended-eventsource: one-by-one 1,2; at-once 1,2,3,4,5
eventsource-client: one-by-one 1,2; at-once 1,2,3,4,5
event-source-plus: one-by-one 1,2; at-once 1,2,3,4,5
fetch-event-source: one-by-one 1,2; at-once 1,2,3,4,5' ]
