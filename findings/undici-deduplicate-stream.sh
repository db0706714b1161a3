#!/usr/bin/env bash
# undici 7.30.2: with `interceptors.deduplicate()`, a reader that leaves a stream ends the streams of the others.
#
# Expected: requests for the same are sent once, and each caller has an answer of its own, as `tee()` gives. Where one of two
# readers of an event stream leaves, by an abort or by `close()`, the other reads on, and the connection is closed with the last.
# Seen: the connection belongs to the reader that asked first. When that one leaves, the connection is closed, and the others
# get "terminated", caused by "This operation was aborted", though they have aborted nothing. Where a later one leaves, the
# others go on. A reader that asks when the first event has come has a request of its own: which readers share an end depends
# on who came within the time to the first event.
# So: a server that follows runs for several users, with `eventsource` or `fetch`, gives streams a dispatcher without that
# interceptor. An AbortError as the `cause` does not show that the reader itself has left. An EventSource that is ended this
# way comes back by itself; a loop over a body does not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund undici@7.30.2
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Agent, fetch, interceptors } from 'undici';

const plain = new Agent();
const deduplicating = new Agent().compose(interceptors.deduplicate());

/** Two readers ask for the same stream. One leaves at its second event of four. Returns what each has. */
async function read(dispatcher, leaving) {
  let requests = 0;
  const server = createServer((_, response) => {
    requests += 1;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    let sent = 0;
    const timer = setInterval(() => {
      sent += 1;
      response.write(`data: ${sent}\n\n`);
      if (sent === 4) response.end();
    }, 100);
    response.on('close', () => clearInterval(timer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const readers = ['first', 'second'].map(async (name) => {
    const controller = new AbortController();
    let got = 0;
    try {
      const { body } = await fetch(`http://127.0.0.1:${server.address().port}/`, {
        dispatcher,
        headers: { accept: 'text/event-stream' },
        signal: controller.signal,
      });
      for await (const _ of body) {
        got += 1;
        if (got === 2 && name === leaving) controller.abort();
      }
      return `${name} has all ${got}`;
    } catch ({ message, cause }) {
      if (name === leaving) return `${name} left`;
      return `${name} is cut off: ${message}, ${cause.message}`;
    }
  });
  const seen = await Promise.all(readers);
  server.close();
  return `${requests} sent, ${seen.join(', ')}`;
}
console.log(`no interceptor: ${await read(plain, 'first')}`);
console.log(`deduplicate: ${await read(deduplicating, 'first')}`);
console.log(`deduplicate: ${await read(deduplicating, 'second')}`);
process.exit(0);
JS
seen=$(timeout 40 node show.mjs)
echo "Node $(node -v)"
echo "$seen"
[ "$seen" = 'no interceptor: 2 sent, first left, second has all 4
deduplicate: 1 sent, first left, second is cut off: terminated, This operation was aborted
deduplicate: 1 sent, first has all 4, second left' ]
