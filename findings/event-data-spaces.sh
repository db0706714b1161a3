#!/usr/bin/env bash
# Clients of event streams lose spaces and line breaks of a text: @microsoft/fetch-event-source 2.0.1, extended-eventsource 2.1.0,
# fetch-event-stream 0.1.6, event-source-plus 0.1.15, and those that @hey-api/openapi-ts 0.99.0 generates.
#
# Expected: the HTML standard takes one space after `data:` away, and joins the lines of an event with line breaks, empty lines
# too. So a server can send the pieces of a model's text as they are: ` list` as `data:  list`, an empty line as two fields.
# eventsource 5.1.5 and eventsource-client 1.2.0 give the text that was sent.
# Seen: the last three take all spaces away that stand before a line, so that words run together and lists lose their levels.
# event-source-plus keeps only the last line of an event, too. The first three drop each line break before the first letter of
# a piece, as an empty line is no line for them: two paragraphs become one. None of them reports anything.
# So: send text as JSON, also where it is one string. Where a page shows words that run together, look at its client first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @microsoft/fetch-event-source@2.0.1 extended-eventsource@2.1.0 fetch-event-stream@0.1.6 \
  event-source-plus@0.1.15 @hey-api/openapi-ts@0.99.0 typescript@5.9.3 esbuild@0.27.2 eventsource@5.1.5 eventsource-client@1.2.0
cat > api.json <<'JSON'
{
  "openapi": "3.1.0",
  "info": { "title": "Texts", "version": "1" },
  "paths": {
    "/": {
      "get": {
        "operationId": "readText",
        "responses": { "200": { "description": "Text", "content": { "text/event-stream": { "schema": { "type": "string" } } } } }
      }
    }
  }
}
JSON
npx openapi-ts --input api.json --output api >/dev/null
npx esbuild api/sdk.gen.ts --bundle --format=esm --outfile=sdk.mjs --log-level=error
npx esbuild api/client/index.ts --bundle --format=esm --outfile=client.mjs --log-level=error
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import fetching from '@microsoft/fetch-event-source';
import { EventSourcePlus } from 'event-source-plus';
import { EventSource } from 'eventsource';
import { createEventSource } from 'eventsource-client';
import { EventSource as ExtendedEventSource } from 'extended-eventsource';
import { events } from 'fetch-event-stream';
import { createClient } from './client.mjs';
import { readText } from './sdk.mjs';

const pieces = ['Buy', ' two', ' things:', '\n\n', '- milk', '\n  - oat', '\n- tea'];
const eventOf = (piece) => `${piece.split('\n').map((line) => `data: ${line}\n`).join('')}\n`;
const server = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end([...pieces, 'end'].map(eventOf).join(''));
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}/`;

// What fetch-event-source needs of a page.
globalThis.window = globalThis;
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };

async function loop(stream, take, textOf = (event) => event.data) {
  for await (const event of stream) take(textOf(event));
}
/** Each gives the text of each event to `take`. */
const clients = {
  eventsource: (take) => (new EventSource(url).onmessage = ({ data }) => take(data)),
  'eventsource-client': (take) => createEventSource({ url, onMessage: ({ data }) => take(data) }),
  'fetch-event-source': (take) => fetching.fetchEventSource(url, { onmessage: ({ data }) => take(data) }),
  'extended-eventsource': (take) =>
    (new ExtendedEventSource(url, { disableLogger: true }).onmessage = ({ data }) => take(data)),
  'fetch-event-stream': async (take) => loop(events(await fetch(url)), take),
  'event-source-plus': (take) => new EventSourcePlus(url).listen({ onMessage: ({ data }) => take(data) }),
  'hey-api': async (take) => {
    const { stream } = await readText({ client: createClient({ baseUrl: url }) });
    await loop(stream, take, (text) => text);
  },
};
console.log(`sent: ${JSON.stringify(pieces.join(''))}`);
for (const [name, read] of Object.entries(clients)) {
  let got = '';
  await new Promise((resolve) => read((text) => (text === 'end' ? resolve() : (got += text))));
  console.log(`${name}: ${JSON.stringify(got)}`);
}
process.exit(0);
JS
seen=$(timeout 40 node show.mjs)
echo "Node $(node -v)"
echo "$seen"
[ "$seen" = 'sent: "Buy two things:\n\n- milk\n  - oat\n- tea"
eventsource: "Buy two things:\n\n- milk\n  - oat\n- tea"
eventsource-client: "Buy two things:\n\n- milk\n  - oat\n- tea"
fetch-event-source: "Buy two things:- milk  - oat- tea"
extended-eventsource: "Buy two things:- milk  - oat- tea"
fetch-event-stream: "Buytwothings:- milk- oat- tea"
event-source-plus: "Buytwothings:- milk- oat- tea"
hey-api: "Buytwothings:\n\n- milk\n- oat\n- tea"' ]
