#!/usr/bin/env bash
# @ag-ui/client 1.0.0, @langchain/langgraph-sdk 1.15.0, @tanstack/ai-client 0.33.2, ai 6.0.326 and fetch-event-stream 0.1.6 keep
# a stream open that their reader has left.
#
# Expected: `break` in a `for await` loop, and `unsubscribe()` of an Observable, free what they use, so the connection is closed
# and the server knows that its reader is gone. openai 6.49.0, @langchain/openai 1.5.8 and parse-sse 0.1.0 do that.
# Seen: the loop is left, or the subscriber is gone, and the client reads on until the server ends the stream. That is so for
# `detachActiveRun()` of an HttpAgent, too, which is for a page that turns to another chat. An AbortSignal closes the
# connection, as does `abortRun()`.
# So: `onDisconnect: 'cancel'` of LangGraph, and each server that cancels work whose reader has left, never see that. Pass a
# signal and abort it beside each `break`. In a browser, six such chats of one host hold all its connections of HTTP/1.1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --legacy-peer-deps @ag-ui/client@1.0.0 @langchain/langgraph-sdk@1.15.0 \
  @langchain/core@1.4.0 @langchain/openai@1.5.8 @tanstack/ai-client@0.33.2 ai@6.0.326 @ai-sdk/openai-compatible@2.0.92 \
  fetch-event-stream@0.1.6 openai@6.49.0 parse-sse@0.1.0
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { HttpAgent } from '@ag-ui/client';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Client } from '@langchain/langgraph-sdk';
import { ChatOpenAI } from '@langchain/openai';
import { fetchServerSentEvents } from '@tanstack/ai-client';
import { streamText } from 'ai';
import { events } from 'fetch-event-stream';
import OpenAI from 'openai';
import { parseServerSentEvents } from 'parse-sse';

const json = (value) => `data: ${JSON.stringify(value)}\n\n`;
const message = { messageId: 'm' };
const agUi = [
  json({ type: 'RUN_STARTED', threadId: 't', runId: 'r' }) + json({ type: 'TEXT_MESSAGE_START', ...message, role: 'assistant' }),
  json({ type: 'TEXT_MESSAGE_CONTENT', ...message, delta: 'a' }),
];
const choice = { index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: null };
const chat = ['', json({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice] })];
const graph = ['', 'event: values\ndata: {"a":1}\n\n'];

/** Serves the first text, and then the second one ten times a second, until the client closes the connection. */
async function serve([first, next]) {
  const stream = { open: true };
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(first);
    const timer = setInterval(() => response.write(next), 100);
    response.on('close', () => {
      clearInterval(timer);
      stream.open = false;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stream.url = `http://127.0.0.1:${server.address().port}`;
  return stream;
}
const leave = async (values) => {
  for await (const _ of values) break;
};
const key = { apiKey: 'none' };
const asked = [{ id: 'u', role: 'user', content: 'Hi' }];
const input = { threadId: 't', runId: 'r', messages: asked, tools: [], context: [], state: {}, forwardedProps: {} };

/** Each reads the first value of a stream, and leaves. */
const clients = {
  '@ag-ui/client, unsubscribe': [
    agUi,
    (url) =>
      new Promise((resolve) => {
        const reader = new HttpAgent({ url }).run(input).subscribe(({ type }) => {
          if (type === 'TEXT_MESSAGE_CONTENT') setTimeout(() => resolve(reader.unsubscribe()));
        });
      }),
  ],
  '@ag-ui/client, detachActiveRun': [
    agUi,
    (url) =>
      new Promise((resolve) => {
        const agent = new HttpAgent({ url, initialMessages: asked });
        const onTextMessageContentEvent = () => void setTimeout(() => agent.detachActiveRun().then(resolve));
        void agent.runAgent({}, { onTextMessageContentEvent });
      }),
  ],
  '@langchain/langgraph-sdk': [graph, (apiUrl) => leave(new Client({ apiUrl }).runs.stream(null, 'agent', { input: {} }))],
  '@tanstack/ai-client': [agUi, (url) => leave(fetchServerSentEvents(url).connect([], undefined, undefined, input))],
  ai: [
    chat,
    (baseURL) => leave(streamText({ model: createOpenAICompatible({ name: 'x', baseURL })('m'), prompt: 'Hi' }).textStream),
  ],
  'fetch-event-stream': [graph, async (url) => leave(events(await fetch(url)))],
  openai: [
    chat,
    async (baseURL) =>
      leave(await new OpenAI({ baseURL, ...key }).chat.completions.create({ model: 'm', messages: asked, stream: true })),
  ],
  '@langchain/openai': [
    chat,
    async (baseURL) => leave(await new ChatOpenAI({ model: 'm', ...key, configuration: { baseURL } }).stream('Hi')),
  ],
  'parse-sse': [graph, async (url) => leave(parseServerSentEvents(await fetch(url)))],
};
const seen = [];
for (const [name, [texts, read]] of Object.entries(clients)) {
  const stream = await serve(texts);
  await read(stream.url);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  seen.push(`${name}: ${stream.open ? 'open' : 'closed'}`);
}
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 90 node show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = '@ag-ui/client, unsubscribe: open; @ag-ui/client, detachActiveRun: open; @langchain/langgraph-sdk: open; @tanstack/ai-client: open; ai: open; fetch-event-stream: open; openai: closed; @langchain/openai: closed; parse-sse: closed' ]
