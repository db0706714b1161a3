#!/usr/bin/env bash
# @tanstack/ai-client 0.33.2 gives the id of an event to the next event, where the line `id:` stands after the line `data:`.
#
# Expected: the HTML standard gives the fields of an event no order; the event ends, and has its id, at the blank line. So a
# client that comes back after a break sends the id of the last event that it has.
# Seen: `fetchServerSentEvents` takes an event when it reads `data:`, with the id that it has read by then. Where the id stands
# after the data, that is the id of the event before. After a break the client sends that id, gets its last event again, and
# the text has a part twice. Where the id stands before the data, nothing is missing or double. eventsource-client 1.2.0 is
# right with both.
# So: for this client, a server writes `id:` before `data:`. Other clients want it last: @microsoft/fetch-event-source 2.0.1 and
# extended-eventsource 2.1.0 send the id of an event whose data was cut off, and lose that event.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @tanstack/ai-client@0.33.2 eventsource-client@1.2.0
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fetchServerSentEvents } from '@tanstack/ai-client';
import { createEventSource } from 'eventsource-client';

const run = { threadId: 't', runId: 'r' };
const message = { messageId: 'm' };
const events = [
  { type: 'RUN_STARTED', ...run },
  { type: 'TEXT_MESSAGE_START', ...message, role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', ...message, delta: 'one ' },
  { type: 'TEXT_MESSAGE_CONTENT', ...message, delta: 'two ' },
  { type: 'TEXT_MESSAGE_CONTENT', ...message, delta: 'three' },
  { type: 'TEXT_MESSAGE_END', ...message },
  { type: 'RUN_FINISHED', ...run },
];

/** Serves the events after Last-Event-ID. The first connection breaks after the event `two`. */
async function serve(idFirst) {
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    const end = requests === 1 ? 4 : events.length;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let n = Number(request.headers['last-event-id'] ?? 0) + 1; n <= end; n += 1) {
      const fields = [`id: ${n}\n`, `data: ${JSON.stringify(events[n - 1])}\n`];
      response.write(`${(idFirst ? fields : fields.reverse()).join('')}\n`);
    }
    if (requests === 1) setTimeout(() => response.destroy(), 200);
    else response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}/`;
}

/** Each reads the text of a run to its end. */
const clients = {
  '@tanstack/ai-client': async (url) => {
    let text = '';
    for await (const { delta = '' } of fetchServerSentEvents(url).connect([], undefined, undefined, run)) text += delta;
    return text;
  },
  'eventsource-client': (url) =>
    new Promise((resolve) => {
      let text = '';
      const source = createEventSource({
        url,
        onMessage: ({ data }) => {
          const { type, delta = '' } = JSON.parse(data);
          text += delta;
          if (type !== 'RUN_FINISHED') return;
          source.close();
          resolve(text);
        },
      });
    }),
};
const seen = [];
for (const [name, read] of Object.entries(clients))
  for (const order of ['first', 'last']) seen.push(`${name}, id ${order}: ${await read(await serve(order === 'first'))}`);
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 60 node show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = '@tanstack/ai-client, id first: one two three; @tanstack/ai-client, id last: one two two three; eventsource-client, id first: one two three; eventsource-client, id last: one two three' ]
