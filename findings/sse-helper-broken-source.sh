#!/usr/bin/env bash
# Helpers for event streams hide that their source failed: hono 4.13.19 and @fastify/sse 0.6.0.
#
# Expected: where the generator behind a stream throws in mid-answer, the helper breaks the connection, or writes an event about it,
# so that the client can tell the answer from a whole one. A Response of hono, `iterable` of h3 2.0.8 and a Readable in fastify
# 5.12.8 break it.
# Seen: `streamSSE` and `streamText` of hono and `reply.sse.send` of @fastify/sse end the answer cleanly: "Delete all" in place of
# "Delete all old files". With an `onError` that does nothing, `streamSSE` writes an event `error` with the message.
# So: catch errors within the generator, and write an event of your own at each end, good or bad. A client of such a server
# takes an answer as whole only when it has seen that event.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund hono@4.13.19 @hono/node-server@2.1.9 fastify@5.12.8 @fastify/sse@0.6.0 h3@2.0.8
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import fastifySse from '@fastify/sse';
import { getRequestListener } from '@hono/node-server';
import fastify from 'fastify';
import { H3, iterable } from 'h3';
import { toNodeHandler } from 'h3/node';
import { Hono } from 'hono';
import { streamSSE, streamText } from 'hono/streaming';

/** An agent that fails after two words. */
async function* words() {
  yield { data: 'Delete' };
  await wait(200);
  yield { data: 'all' };
  await wait(200);
  throw new Error('The model is gone');
}
async function* lines() {
  for await (const { data } of words()) yield `data: ${data}\n\n`;
}
const headers = { 'content-type': 'text/event-stream' };
const hono = (handler) => createServer(getRequestListener(new Hono().get('/', handler).fetch));
const send = async (stream) => {
  for await (const word of words()) await stream.writeSSE(word);
};
const serve = async (options, handler, plugin) => {
  const app = fastify();
  if (plugin) await app.register(plugin);
  app.get('/', options, handler);
  await app.ready();
  return app.server;
};
const servers = {
  'hono Response': () => hono(() => new Response(ReadableStream.from(lines()).pipeThrough(new TextEncoderStream()), { headers })),
  'h3 iterable': () => createServer(toNodeHandler(new H3().get('/', () => iterable(lines())))),
  'fastify Readable': () => serve({}, (_, reply) => reply.headers(headers).send(Readable.from(lines()))),
  'hono streamSSE': () => hono((context) => streamSSE(context, send)),
  'hono streamSSE, onError': () => hono((context) => streamSSE(context, send, async () => {})),
  'hono streamText': () =>
    hono((context) =>
      streamText(context, async (stream) => {
        for await (const line of lines()) await stream.write(line);
      }),
    ),
  '@fastify/sse': () => serve({ sse: true }, (_, reply) => reply.sse.send(words()), fastifySse),
};
console.error = () => {};
const seen = [];
for (const [name, make] of Object.entries(servers)) {
  const server = await make();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  let text = '';
  const read = async () => {
    const { body } = await fetch(`http://127.0.0.1:${server.address().port}/`, { headers: { accept: 'text/event-stream' } });
    for await (const piece of body) text += new TextDecoder().decode(piece);
    return 'ends';
  };
  const end = await read().catch(() => 'breaks');
  seen.push(`${name}: ${end}${text.includes('gone') ? ' with the error' : ''}`);
}
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 45 node show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = 'hono Response: breaks; h3 iterable: breaks; fastify Readable: breaks; hono streamSSE: ends; hono streamSSE, onError: ends with the error; hono streamText: ends; @fastify/sse: ends' ]
