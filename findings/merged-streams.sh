#!/usr/bin/env bash
# ix 7.0.0, streaming-iterables 8.0.1 and iter-tools 7.5.4 merge streams, and do not return them when the loop is left.
#
# Expected: `break` in a loop over `merge(a, b)` calls `return()` of both, as a loop over one of them does. So the connections of
# two model answers are closed, and each generator runs its `finally`. That is so in it-merge 3.0.15, in @repeaterjs/repeater
# 3.1.0, and with `mergeAll` of ix. Where one stream throws, they return the other one, too.
# Seen: `merge` of ix and of streaming-iterables, `parallelMerge`, and `asyncInterleaveReady` of iter-tools return neither. Each
# source stays where it is: its connection is open, and the server does not see that its reader has gone.
# So: an agent that reads several streams at once takes one of the other three, or passes each stream an AbortSignal and aborts
# it in a `finally` around the loop. `context.signal` of Rivulet covers a cancel, but not an error of the other stream.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund ix@7.0.0 streaming-iterables@8.0.1 iter-tools@7.5.4 it-merge@3.0.15 \
  @repeaterjs/repeater@3.1.0
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { Repeater } from '@repeaterjs/repeater';
import itMerge from 'it-merge';
import { asyncInterleaveReady } from 'iter-tools';
import { from, merge as ixMerge } from 'ix/asynciterable';
import { mergeAll } from 'ix/asynciterable/operators';
import { merge, parallelMerge } from 'streaming-iterables';

let open = 0;
// Ten events a second, until the client closes the connection. The stream of /broken breaks after the first ones.
const server = createServer((request, response) => {
  open++;
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: a\n\n');
  const timer = setInterval(() => response.write('data: b\n\n'), 100);
  if (request.url === '/broken') setTimeout(() => response.destroy(), 350);
  response.on('close', () => {
    clearInterval(timer);
    open--;
  });
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}`;
// Kept, as Node closes the connections of answers that are collected as garbage.
const kept = [];
let finals = 0;
async function* read(path) {
  try {
    const { body } = await fetch(url + path);
    kept.push(body);
    yield* body;
  } finally {
    finals++;
  }
}
const ways = {
  'no merge': (_, b) => b,
  'ix merge': ixMerge,
  'streaming-iterables merge': merge,
  'streaming-iterables parallelMerge': parallelMerge,
  'iter-tools asyncInterleaveReady': asyncInterleaveReady,
  'ix mergeAll': (a, b) => from([a, b]).pipe(mergeAll()),
  'it-merge': itMerge,
  repeater: (a, b) => Repeater.merge([a, b]),
};
const seen = [];
for (const [name, join] of Object.entries(ways)) {
  const ends = [];
  for (const path of ['/whole', '/broken']) {
    const before = open;
    finals = 0;
    let count = 0;
    let end = 'left';
    try {
      for await (const _ of join(read('/whole'), read(path))) if (++count === 6 && path === '/whole') break;
    } catch {
      end = 'broken';
    }
    await wait(1_000);
    ends.push(`${end}, ${open - before} open, ${finals} finally`);
  }
  seen.push(`${name}: ${ends.join('; ')}`);
}
console.log(seen.join(' | '));
process.exit(0);
JS
seen=$(timeout 50 node show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = 'no merge: left, 0 open, 1 finally; broken, 0 open, 1 finally | ix merge: left, 2 open, 0 finally; broken, 1 open, 1 finally | streaming-iterables merge: left, 2 open, 0 finally; broken, 1 open, 1 finally | streaming-iterables parallelMerge: left, 2 open, 0 finally; broken, 1 open, 1 finally | iter-tools asyncInterleaveReady: left, 2 open, 0 finally; broken, 1 open, 1 finally | ix mergeAll: left, 0 open, 2 finally; broken, 0 open, 2 finally | it-merge: left, 0 open, 2 finally; broken, 0 open, 2 finally | repeater: left, 0 open, 2 finally; broken, 0 open, 2 finally' ]
