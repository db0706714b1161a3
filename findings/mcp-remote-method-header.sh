#!/usr/bin/env bash
# mcp-remote 0.15.1 sends the header `Mcp-Method` with `initialize`, and no `MCP-Protocol-Version`.
#
# Expected: `Mcp-Method` came with MCP 2026-07-28, which requires `MCP-Protocol-Version` beside it and has no `initialize`. So a
# server of both eras may take a request with `Mcp-Method` for one of 2026-07-28, and refuse it without the other header.
# Seen: mcp-remote asks for 2025-11-25, in the body alone, and copies the method of each body to the header. After the 400 of
# such a server it ends, so that no editor behind it can connect. @modelcontextprotocol/client 2.4.0 sends neither header.
# So: a server takes an `initialize` that has no version in its `_meta` for one of the older era, whatever its headers are.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund mcp-remote@0.15.1 @modelcontextprotocol/client@2.4.0
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

let seen = [];
const server = createServer(async (request, response) => {
  if (request.method !== 'POST') return response.writeHead(request.url === '/mcp' ? 405 : 404).end();
  const { id, method, params } = JSON.parse(await text(request));
  const header = (name) => `${name} ${request.headers[name.toLowerCase()] ?? 'none'}`;
  const headers = [header('Mcp-Method'), header('MCP-Protocol-Version')];
  if (method === 'initialize') seen.push([`asks for ${params.protocolVersion}`, ...headers].join(', '));
  if (id === undefined) return response.writeHead(202).end();
  const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'server', version: '1' } };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}/mcp`;

const args = ['node_modules/mcp-remote/dist/proxy.js', url, '--allow-http', '--transport', 'http-only'];
const env = { ...process.env, MCP_REMOTE_CONFIG_DIR: process.cwd() };
const transports = {
  'mcp-remote': new StdioClientTransport({ command: process.execPath, args, env, stderr: 'ignore' }),
  '@modelcontextprotocol/client': new StreamableHTTPClientTransport(new URL(url)),
};
for (const [name, transport] of Object.entries(transports)) {
  seen = [];
  const client = new Client({ name: 'client', version: '1' });
  await client.connect(transport);
  await client.close();
  console.log(`${name}: ${[...new Set(seen)].join(' and ')}`);
}
process.exit(0);
JS
seen=$(timeout 40 node show.mjs | paste -sd ';')
echo "Node $(node -v): $seen"
[ "$seen" = 'mcp-remote: asks for 2025-11-25, Mcp-Method initialize, MCP-Protocol-Version none;@modelcontextprotocol/client: asks for 2025-11-25, Mcp-Method none, MCP-Protocol-Version none' ]
