#!/usr/bin/env bash
# A tool call of @ai-sdk/mcp 1.0.102 and 2.0.99 stays pending for ever where the connection of its answer breaks.
#
# Expected: a server of MCP 2025-11-25 may close the stream of a call after an event with an id and no data, and the client
# comes back with GET and Last-Event-ID. A client that does not come back rejects the call: the stream ended without a result.
# Seen: the call neither goes on nor is rejected, and has no limit of time, as `timeout` has no default. `onUncaughtError` gets
# `terminated` after a break and nothing after a clean end, and before that an error for the event without data.
# @modelcontextprotocol/client 2.4.0 comes back and has the result.
# So: a program that uses these tools sets a limit for each call. A server cannot end a call after it has lost its stream.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund mcp1@npm:@ai-sdk/mcp@1.0.102 mcp2@npm:@ai-sdk/mcp@2.0.99 \
  @modelcontextprotocol/client@2.4.0
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

/** A server of MCP 2025-11-25. It loses the stream of the call after its first event, and has the result for a GET. */
async function serve(breaks) {
  let call;
  const answer = (id, result) => JSON.stringify({ jsonrpc: '2.0', id, result });
  const results = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'server', version: '1' } },
    'tools/list': { tools: [{ name: 'wait', inputSchema: { type: 'object', properties: {} } }] },
  };
  const server = createServer(async (request, response) => {
    const stream = (event) => response.writeHead(200, { 'content-type': 'text/event-stream' }).write(event);
    if (request.method === 'GET' && request.headers['last-event-id'] === '1') {
      stream(`id: 2\ndata: ${answer(call, { content: [{ type: 'text', text: 'done' }] })}\n\n`);
      return response.end();
    }
    if (request.method !== 'POST') return response.writeHead(405).end();
    const { id, method } = JSON.parse(await text(request));
    if (id === undefined) return response.writeHead(202).end();
    if (method === 'tools/call') {
      call = id;
      stream('id: 1\nretry: 50\ndata:\n\n');
      return setTimeout(() => (breaks ? response.destroy() : response.end()), 200);
    }
    const error = { code: -32601, message: 'Method not found' };
    const known = method in results;
    response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' });
    response.end(known ? answer(id, results[method]) : JSON.stringify({ jsonrpc: '2.0', id, error }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}/`;
}

/** Each connects, and returns what calls the tool. */
const aiSdk = async (name, url) => {
  const { createMCPClient } = await import(name);
  const client = await createMCPClient({ transport: { type: 'http', url }, onUncaughtError: () => {} });
  const { wait } = await client.tools();
  return () => wait.execute({}, { toolCallId: '1', messages: [] });
};
const clients = {
  '@ai-sdk/mcp 1': (url) => aiSdk('mcp1', url),
  '@ai-sdk/mcp 2': (url) => aiSdk('mcp2', url),
  '@modelcontextprotocol/client': async (url) => {
    const client = new Client({ name: 'client', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return () => client.callTool({ name: 'wait', arguments: {} });
  },
};
const seen = [];
for (const [name, open] of Object.entries(clients))
  for (const end of ['break', 'clean end']) {
    const call = await open(await serve(end === 'break'));
    const wait = new Promise((resolve) => setTimeout(resolve, 5_000, 'pending'));
    const result = call().then(({ content }) => content[0].text, () => 'rejected');
    seen.push(Promise.race([result, wait]).then((state) => `${name}, ${end}: ${state}`));
  }
console.log((await Promise.all(seen)).join('; '));
process.exit(0);
JS
seen=$(timeout 60 node show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = '@ai-sdk/mcp 1, break: pending; @ai-sdk/mcp 1, clean end: pending; @ai-sdk/mcp 2, break: pending; @ai-sdk/mcp 2, clean end: pending; @modelcontextprotocol/client, break: done; @modelcontextprotocol/client, clean end: done' ]
