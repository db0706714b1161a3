#!/usr/bin/env bash
# A client that @hey-api/openapi-ts 0.99.0 generates repeats a POST whose stream breaks, and one that was refused, for ever.
#
# Expected: a POST that starts work is sent once, as by each other function of the generated client. A stream that breaks ends
# the loop over it with an error, and so does an answer with 401 or 422, as no stream comes then.
# Seen: where the only content of the 200 is `text/event-stream`, the function for the POST reads the stream, and takes any end
# but a clean one for a reason to send the request with its body again, with no key that the server could know it by. So one
# call starts a run after each break, and the loop has the events of all of them in a row. A 401, a 422 and a 204 are repeated
# as well, after 3 to 30 seconds, without a limit and without a word to the loop: only `onSseError` has the error. The wait
# doubles with each break of a stream and is never set back, so a long stream that broke five times waits half a minute.
# So: with such a client, set `sseMaxRetryAttempts: 1`, look at `onSseError`, and follow the run by a GET. A server that offers
# the POST as JSON too, in one 200 with both contents, gets a function that sends it once.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @hey-api/openapi-ts@0.99.0 typescript@5.9.3 esbuild@0.27.2
cat > api.json <<'JSON'
{
  "openapi": "3.1.0",
  "info": { "title": "Runs", "version": "1" },
  "paths": {
    "/runs": {
      "post": {
        "operationId": "createRun",
        "requestBody": { "content": { "application/json": { "schema": { "type": "object" } } } },
        "responses": { "200": { "description": "Events", "content": { "text/event-stream": { "schema": { "type": "object" } } } } }
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
import { text } from 'node:stream/consumers';
import { createClient } from './client.mjs';
import { createRun } from './sdk.mjs';

/** How the server answers each request. */
const answers = {
  'broken twice': (response, number) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    // The break is sent after the event has gone out.
    response.write(`data: {"run":${number}}\n\n`, () => (number < 3 ? setTimeout(() => response.destroy(), 200) : response.end()));
  },
  'HTTP 401': (response) => response.writeHead(401).end(),
  'HTTP 422': (response) => response.writeHead(422).end(),
  'HTTP 204': (response) => response.writeHead(204).end(),
};

for (const [name, answer] of Object.entries(answers)) {
  const bodies = [];
  const server = createServer(async (request, response) => {
    bodies.push(`${request.method} ${await text(request)}`);
    answer(response, bodies.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const waits = [];
  const controller = new AbortController();
  // Waits no time, and ends what would go on for ever.
  const sseSleepFn = async (wait) => {
    if (waits.push(wait / 1_000) === 6) controller.abort();
  };
  const client = createClient({ baseUrl: `http://127.0.0.1:${server.address().port}` });
  const { stream } = await createRun({ client, body: { pay: 5 }, throwOnError: true, signal: controller.signal, sseSleepFn });
  const events = [];
  let end = 'ends';
  try {
    for await (const event of stream) events.push(JSON.stringify(event));
  } catch {
    end = 'throws';
  }
  if (controller.signal.aborted) end = 'goes on';
  console.log(`${name}: ${bodies.length} times ${[...new Set(bodies)]}; waits ${waits}; loop has [${events}], ${end}`);
}
process.exit(0);
JS
seen=$(timeout 40 node show.mjs)
echo "Node $(node -v)"
echo "$seen"
[ "$seen" = 'broken twice: 3 times POST {"pay":5}; waits 3,6; loop has [{"run":1},{"run":2},{"run":3}], ends
HTTP 401: 6 times POST {"pay":5}; waits 3,6,12,24,30,30; loop has [], goes on
HTTP 422: 6 times POST {"pay":5}; waits 3,6,12,24,30,30; loop has [], goes on
HTTP 204: 6 times POST {"pay":5}; waits 3,6,12,24,30,30; loop has [], goes on' ]
