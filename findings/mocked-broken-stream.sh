#!/usr/bin/env bash
# msw 3.0.5 and nock 15.0.6 end a mocked stream cleanly for `fetch` where the mock breaks it off.
#
# Expected: a body that fails in the middle, such as a ReadableStream after `controller.error()` or a Readable that is destroyed with
# an error, is for the client what a lost connection is: its loop over the body throws. That is so with a real server, and with
# fetch-mock 12.6.0. `client.error()` of an event stream of msw has its name from that.
# Seen: the loop ends as after a whole answer, with each of these. The mocked answer has neither `Content-Length` nor
# `Transfer-Encoding`, so it ends where its connection ends. With `Transfer-Encoding: chunked` among the headers of the mock, the
# loop throws `terminated`, as it does with a server.
# So: a test that a client resumes, or that it reports a cut-off answer, tests a clean end instead. Set that header in mocks of
# streams, and with msw use `http.get()` for it in place of `sse()`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund msw@3.0.5 nock@15.0.6 fetch-mock@12.6.0 eventsource@4.1.1 node24@npm:node@24.11.0
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { EventSource } from 'eventsource';

// msw wants it for `sse()`.
globalThis.EventSource = EventSource;
const url = 'http://example.test/';
const headers = { 'content-type': 'text/event-stream' };
const chunked = { ...headers, 'transfer-encoding': 'chunked' };
const event = 'id: 1\ndata: a\n\n';
const later = (task) => setTimeout(task, 200);

/** A stream of the web that fails after its first event. */
const stream = () =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(event));
      later(() => controller.error(new Error('cut')));
    },
  });
/** The same for Node. */
const readable = () => {
  const body = new Readable({ read() {} });
  body.push(event);
  later(() => body.destroy(new Error('cut')));
  return body;
};
/** Each mocks the address, and returns what ends that. */
const mocks = {
  server: async () => {
    const server = createServer((_, response) => {
      response.writeHead(200, headers).write(event);
      later(() => response.destroy());
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return { address: `http://127.0.0.1:${server.address().port}`, end: () => server.close() };
  },
  'fetch-mock': async () => {
    const { default: fetchMock } = await import('fetch-mock');
    fetchMock.mockGlobal().get(url, () => new Response(stream(), { headers }));
    return { address: url, end: () => fetchMock.hardReset() };
  },
};
for (const [name, sent] of Object.entries({ nock: headers, 'nock, chunked': chunked })) {
  mocks[name] = async () => {
    const { default: nock } = await import('nock');
    if (!nock.isActive()) nock.activate();
    nock('http://example.test').get('/').reply(200, readable, sent);
    return { address: url, end: () => nock.restore() };
  };
}
const msw = (handler) => async () => {
  const [{ setupServer }, tools] = await Promise.all([import('msw/node'), import('msw')]);
  const server = setupServer(handler(tools));
  server.listen();
  return { address: url, end: () => server.close() };
};
mocks.msw = msw(({ http }) => http.get(url, () => new Response(stream(), { headers })));
mocks['msw, chunked'] = msw(({ http }) => http.get(url, () => new Response(stream(), { headers: chunked })));
mocks['msw, sse'] = msw(({ sse }) =>
  sse(url, ({ client }) => {
    client.send({ id: '1', data: 'a' });
    later(() => client.error());
  }),
);
const seen = [];
for (const [name, mock] of Object.entries(mocks)) {
  const { address, end } = await mock();
  let text = '';
  let how = 'ends';
  try {
    const { body } = await fetch(address, { headers: { accept: 'text/event-stream' } });
    for await (const piece of body) text += new TextDecoder().decode(piece);
  } catch ({ message }) {
    how = `throws ${message}`;
  }
  seen.push(`${name}: ${text === '' ? 'nothing, ' : ''}${how}`);
  end();
}
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 40 node_modules/node24/bin/node show.mjs)
echo "Node $(node_modules/node24/bin/node -v): $seen"
[ "$seen" = 'server: throws terminated; fetch-mock: throws cut; nock: ends; nock, chunked: throws terminated; msw: ends; msw, chunked: throws terminated; msw, sse: ends' ]
