#!/usr/bin/env bash
# @langchain/langgraph-sdk 1.15.0 breaks off a live stream whose comments come every 30 seconds or more rarely.
#
# Expected: comments keep an idle stream open. The client sizes the time after which it takes a stream for dead from the interval
# of the comments, as its types say, so a server may choose any interval.
# Seen: that time is three intervals of the first comments, but 30 seconds at most. With a comment every 30 or 45 seconds, soon
# enough for the 60 seconds that proxies usually wait, the client breaks the stream off 30 seconds after the second comment,
# before the next one is due. Two comments within two seconds, as a greeting is, make it 6 seconds, and a comment every 15
# seconds is too late then. Where the answer had no `Location`, the loop throws StreamIdleTimeoutError; with it, the client
# comes back with GET, and does the same again. A stream without any comment is never broken off.
# So: a server greets with one comment at most, and sends the others at least every 20 seconds. A client of another server
# sets `streamIdleReconnect: 0`, or a number of milliseconds above the interval.
#
# The time is simulated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --legacy-peer-deps @langchain/langgraph-sdk@1.15.0 @langchain/core@1.4.0
cat > show.mjs <<'JS'
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Client } from '@langchain/langgraph-sdk';

const settle = async () => {
  for (let i = 0; i < 50; i += 1) await turn();
};

/** Follows a run that is silent for four minutes but for comments at some seconds. Returns when and how that ends. */
async function follow(hasComment, headers, options) {
  let body;
  const asked = [];
  const fetch = async (_, { method, headers: sent }) => {
    asked.push(`${method ?? 'GET'} after ${new Headers(sent).get('last-event-id') ?? 'nothing'}`);
    const stream = new ReadableStream({ start: (controller) => (body = controller) });
    return new Response(stream, { headers: { 'content-type': 'text/event-stream', ...headers } });
  };
  const client = new Client({ apiUrl: 'http://server', callerOptions: { fetch, maxRetries: 0 } });
  let end;
  const read = async () => {
    for await (const _ of client.runs.stream('thread', 'agent', { input: {}, ...options }));
  };
  read().then(() => (end = 'ended'), ({ name }) => (end = name));
  await settle();
  body.enqueue(Buffer.from('id: 1\nevent: values\ndata: {}\n\n'));
  for (let second = 1; second <= 240; second += 1) {
    await settle();
    mock.timers.tick(1_000);
    await settle();
    if (end !== undefined) return `${end} at ${second} s`;
    if (asked.length > 1) return asked.at(-1);
    // After an idle time with `Location` the stream is left, and the client waits before it comes back.
    if (hasComment(second)) {
      try {
        body.enqueue(Buffer.from(': still here\n\n'));
      } catch {}
    }
  }
  return 'open';
}

const every = (interval) => (second) => second % interval === 0;
const greeted = (second) => second === 1 || second === 2 || every(15)(second);

mock.timers.enable({ apis: ['setTimeout', 'Date'] });
console.log(`none: ${await follow(() => false)}`);
for (const interval of [15, 25, 30, 45]) console.log(`every ${interval} s: ${await follow(every(interval))}`);
console.log(`at 1 s, at 2 s, every 15 s: ${await follow(greeted)}`);
console.log(`every 45 s, Location: ${await follow(every(45), { location: '/threads/thread/runs/run/stream' })}`);
console.log(`every 45 s, streamIdleReconnect 0: ${await follow(every(45), {}, { streamIdleReconnect: 0 })}`);
process.exit(0);
JS
seen=$(timeout 40 node show.mjs 2>/dev/null)
echo "Node $(node -v)"
echo "$seen"
[ "$seen" = 'none: open
every 15 s: open
every 25 s: open
every 30 s: StreamIdleTimeoutError at 90 s
every 45 s: StreamIdleTimeoutError at 120 s
at 1 s, at 2 s, every 15 s: StreamIdleTimeoutError at 8 s
every 45 s, Location: GET after 1
every 45 s, streamIdleReconnect 0: open' ]
