#!/usr/bin/env bash
# supergateway 4.0.0 cancels another call than the editor did, and answers the questions that it said the editor can answer.
#
# Expected: a gateway from stdio to Streamable HTTP passes messages on as they are, as mcp-remote 0.15.1 does; or, where it gives
# calls ids of its own, puts those in `notifications/cancelled` too.
# Seen: it numbers calls by itself, from 0, and passes the cancellation on with the id of the editor. An editor whose first id
# is 1 cancels call 2, and the server is told to cancel the call after it. With other ids, no call is cancelled. The editor's
# `elicitation` goes to the server as a capability, but the gateway answers `elicitation/create` with -32601; and it passes
# the progress token on, and throws the progress away.
# So: a server behind it sees a client that can answer, and cannot: it takes -32601 for "nobody answers", and does not ask
# again. A call that costs money needs a way to cancel it other than MCP, or another gateway.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund supergateway@4.0.0 mcp-remote@0.15.1
cat > show.mjs <<'JS'
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A server of MCP 2025-11-25. Its tool sends progress and asks a question, and does not end. */
async function serve() {
  const calls = new Map();
  const seen = { cancelled: 'nothing' };
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST') return response.writeHead(request.url === '/mcp' ? 405 : 404).end();
    const { id, method, params, result, error } = JSON.parse(await text(request));
    if (method === 'initialize') {
      seen.capability = 'elicitation' in params.capabilities;
      const value = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'server', version: '1' } };
      response.writeHead(200, { 'content-type': 'application/json' });
      return response.end(JSON.stringify({ jsonrpc: '2.0', id, result: value }));
    }
    if (method === 'tools/call') {
      const { name } = params.arguments;
      calls.set(id, name);
      const send = (message) => response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      send({ method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 1 } });
      const requestedSchema = { type: 'object', properties: { answer: { type: 'string' } } };
      if (name === 'A') send({ id: 'question', method: 'elicitation/create', params: { message: 'Pay?', requestedSchema } });
      return;
    }
    if (method === 'notifications/cancelled') seen.cancelled = calls.get(params.requestId) ?? 'no call';
    if (id === 'question') seen.answer = result?.action ?? error.code;
    response.writeHead(202).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { seen, url: `http://127.0.0.1:${server.address().port}/mcp` };
}

/** An editor that calls the tool for A and B, answers the question, and cancels A. */
async function edit(path, ...words) {
  const { seen, url } = await serve();
  const args = words.map((word) => (word === 'URL' ? url : word));
  const env = { ...process.env, MCP_REMOTE_CONFIG_DIR: process.cwd() };
  const gateway = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'ignore'], env });
  const send = (message) => gateway.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  let progress = 0;
  const ready = new Promise((resolve) => {
    createInterface({ input: gateway.stdout }).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      if (id === 1) resolve();
      if (method === 'notifications/progress') progress += 1;
      if (method === 'elicitation/create') send({ id, result: { action: 'accept', content: { answer: 'yes' } } });
    });
  });
  const clientInfo = { name: 'editor', version: '1' };
  send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: { elicitation: {} }, clientInfo } });
  await ready;
  send({ method: 'notifications/initialized' });
  for (const [id, name] of [[2, 'A'], [3, 'B']]) {
    send({ id, method: 'tools/call', params: { name: 'work', arguments: { name }, _meta: { progressToken: id } } });
    await pause(500);
  }
  send({ method: 'notifications/cancelled', params: { requestId: 2 } });
  await pause(1_000);
  gateway.kill();
  return `can answer: ${seen.capability}, answer: ${seen.answer}, progress: ${progress}, cancelled: ${seen.cancelled}`;
}
const remote = ['URL', '--allow-http', '--transport', 'http-only'];
console.log(`mcp-remote: ${await edit('node_modules/mcp-remote/dist/proxy.js', ...remote)}`);
console.log(`supergateway: ${await edit('node_modules/supergateway/dist/index.js', '--streamableHttp', 'URL', '--logLevel', 'none')}`);
process.exit(0);
JS
seen=$(timeout 60 node show.mjs | paste -sd ';')
echo "Node $(node -v): $seen"
[ "$seen" = 'mcp-remote: can answer: true, answer: accept, progress: 2, cancelled: A;supergateway: can answer: true, answer: -32601, progress: 0, cancelled: B' ]
