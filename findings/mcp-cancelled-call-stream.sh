#!/usr/bin/env bash
# The MCP clients and servers of @modelcontextprotocol keep the stream of each call open that was cancelled or timed out:
# sdk 1.32.2, client 2.4.0, and server 2.4.0 with node 2.1.2.
#
# Expected: an abort of a call, or its time limit, ends the call on both sides. The client sends `notifications/cancelled`, the
# tool is aborted, and the connection that waits for the result is closed by one of them, as no result comes any more.
# Seen: up to version 2025-11-25 the tool is aborted, and its stream stays open until the session is closed. The specification
# wants no answer to a cancelled call; the server closes a stream with its last answer, so it never does; and the client reads
# on. Five cancelled calls hold five connections, whichever versions are on the two sides. With 2026-07-28, where the client
# closes the stream to cancel, none is left.
# So: over HTTP/1.1 a page that has cancelled six calls can send nothing more to that server, a cancellation neither. A server
# ends the stream of a cancelled call itself, with or without an answer, and counts streams by calls that still work.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/client@2.4.0 \
  @modelcontextprotocol/server@2.4.0 @modelcontextprotocol/node@2.1.2 zod@4.6.7
cat > show.mjs <<'JS'
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Client as Client2, StreamableHTTPClientTransport as ClientTransport2 } from '@modelcontextprotocol/client';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClientTransport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer as McpServer1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpHandler, McpServer as McpServer2 } from '@modelcontextprotocol/server';

const count = 5;
const settle = () => new Promise((resolve) => setTimeout(resolve, 500));

/** A server with the tool `wait`, which ends when it is aborted. Emits `call` and `aborted`. */
function serverOf(McpServer, node) {
  const server = new McpServer({ name: 'server', version: '1' });
  server.registerTool('wait', { description: 'Waits' }, async (context) => {
    const signal = context.signal ?? context.mcpReq.signal;
    node.emit('call');
    if (!signal.aborted) await once(signal, 'abort');
    node.emit('aborted');
    return { content: [] };
  });
  return server;
}

/** Keeps sessions, as both SDKs need it for a cancellation that comes with another request. */
function sessionsOf(McpServer, Transport, node) {
  const sessions = new Map();
  return async (request, response) => {
    let transport = sessions.get(request.headers['mcp-session-id']);
    if (transport === undefined) {
      transport = new Transport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, transport),
      });
      await serverOf(McpServer, node).connect(transport);
    }
    await transport.handleRequest(request, response);
  };
}

const servers = {
  'server 1': (node) => sessionsOf(McpServer1, StreamableHTTPServerTransport, node),
  'server 2': (node) => sessionsOf(McpServer2, NodeStreamableHTTPServerTransport, node),
  'server 2, 2026-07-28': (node) => toNodeHandler(createMcpHandler(() => serverOf(McpServer2, node))),
};
/** Each connects, and returns what calls the tool. */
const clients = {
  'client 1': async (url) => {
    const client = new Client1({ name: 'client', version: '1' });
    await client.connect(new ClientTransport1(url));
    return { client, call: (options) => client.callTool({ name: 'wait', arguments: {} }, undefined, options) };
  },
  'client 2': async (url, mode = 'legacy') => {
    const client = new Client2({ name: 'client', version: '1' }, { versionNegotiation: { mode } });
    await client.connect(new ClientTransport2(url));
    return { client, call: (options) => client.callTool({ name: 'wait', arguments: {} }, options) };
  },
};
for (const [pair, name, other, mode] of [
  ['server 1', 'server 1', 'client 1'],
  ['server 1', 'server 1', 'client 2'],
  ['server 2', 'server 2', 'client 1'],
  ['server 2', 'server 2', 'client 2'],
  ['2026-07-28', 'server 2, 2026-07-28', 'client 2', 'auto'],
]) {
  let open = 0;
  let aborted = 0;
  const node = createServer((request, response) => {
    if (request.method === 'POST') {
      open += 1;
      response.on('close', () => (open -= 1));
    }
    handle(request, response);
  });
  node.on('aborted', () => (aborted += 1));
  const handle = servers[name](node);
  node.listen(0, '127.0.0.1');
  await once(node, 'listening');
  const { client, call } = await clients[other](new URL(`http://127.0.0.1:${node.address().port}/`), mode);
  for (let number = 0; number < count; number += 1) {
    const controller = new AbortController();
    // The last one comes to its time limit.
    const options = number === count - 1 ? { timeout: 1_000 } : { signal: controller.signal };
    const called = once(node, 'call');
    const ended = once(node, 'aborted');
    const result = call(options).then(() => 'a result', () => 'rejected');
    await called;
    if (options.timeout === undefined) controller.abort();
    if ((await result) !== 'rejected') throw new Error('the call was not rejected');
    await ended;
  }
  await settle();
  const left = open;
  await client.close();
  await settle();
  console.log(`${pair}, ${other}: ${aborted} of ${count} tools aborted, ${left} streams open, ${open} after close()`);
}
process.exit(0);
JS
seen=$(timeout 40 node show.mjs)
echo "Node $(node -v)"
echo "$seen"
[ "$seen" = 'server 1, client 1: 5 of 5 tools aborted, 5 streams open, 0 after close()
server 1, client 2: 5 of 5 tools aborted, 5 streams open, 0 after close()
server 2, client 1: 5 of 5 tools aborted, 5 streams open, 0 after close()
server 2, client 2: 5 of 5 tools aborted, 5 streams open, 0 after close()
2026-07-28, client 2: 5 of 5 tools aborted, 0 streams open, 0 after close()' ]
