#!/usr/bin/env bash
# @mastra/mcp 2.0.0 calls a tool again where the first call may have been done, also for a text in the error of the tool.
#
# Expected: a client that lost the connection of a call does not know whether the tool has run. It reports that, and repeats only
# a tool whose annotations say `readOnlyHint` or `idempotentHint`. An error that the server has answered is an answer.
# Seen: the client looks for texts in the message of each error, such as `fetch failed`, `connection closed` and `http 404`. A
# break before the headers has one, and so has an error of JSON-RPC that quotes what the tool met: its own fetch that failed.
# In both cases the client connects anew and calls again, with `idempotentHint: false` too, and hands out only the second
# result. A result with `isError` and the same text, and a 502, are not repeated. @modelcontextprotocol/client 2.4.0, which is
# below it, calls once in all cases.
# So: a tool with effects needs a key for each effect among its arguments, as the second call has a new connection and a new id.
# A server reports a failed tool as a result with `isError`, and keeps foreign error texts out of errors of JSON-RPC.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @mastra/mcp@2.0.0 @mastra/core@1.71.0 @modelcontextprotocol/client@2.4.0
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { MCPClient } from '@mastra/mcp';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const met = 'Paid, but no receipt was sent: fetch failed';
/** How the first call ends, after the tool has paid. */
const ends = {
  break: (response) => response.destroy(),
  error: (_, answer) => answer({ error: { code: -32603, message: met } }),
  isError: (_, answer) => answer({ result: { isError: true, content: [{ type: 'text', text: met }] } }),
  502: (response) => response.writeHead(502).end(),
};

/** A server of MCP 2025-11-25 with the tool `pay`, which must not be repeated. */
async function serve(end) {
  const annotations = { readOnlyHint: false, destructiveHint: true, idempotentHint: false };
  const results = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'server', version: '1' } },
    'tools/list': { tools: [{ name: 'pay', annotations, inputSchema: { type: 'object', properties: {} } }] },
  };
  let paid = 0;
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST') return response.writeHead(405).end();
    const { id, method } = JSON.parse(await text(request));
    if (id === undefined) return response.writeHead(202).end();
    const answer = (body, status = 200) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
    };
    if (method !== 'tools/call') {
      if (method in results) return answer({ result: results[method] });
      return answer({ error: { code: -32601, message: 'Method not found' } }, 404);
    }
    paid += 1;
    if (paid === 1) return ends[end](response, answer);
    answer({ result: { content: [{ type: 'text', text: 'Paid' }] } });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: new URL(`http://127.0.0.1:${server.address().port}/`), paid: () => paid };
}

/** Each connects, and returns what calls the tool. */
const clients = {
  '@mastra/mcp': async (url) => {
    const client = new MCPClient({ id: url.port, servers: { bank: { url } }, logger: false });
    const { bank_pay } = await client.listTools();
    return () => bank_pay.execute({}, {});
  },
  '@modelcontextprotocol/client': async (url) => {
    const client = new Client({ name: 'client', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(url));
    return () => client.callTool({ name: 'pay', arguments: {} });
  },
};
// Mastra logs each failed call.
console.error = () => {};
for (const [name, open] of Object.entries(clients)) {
  const seen = [];
  for (const end of ['break', 'error', 'isError', '502']) {
    const { url, paid } = await serve(end);
    const call = await open(url);
    const result = await call().then(({ isError }) => (isError ? 'error' : 'result'), () => 'error');
    seen.push(`${end}: paid ${paid()}, ${result}`);
  }
  console.log(`${name}: ${seen.join('; ')}`);
}
process.exit(0);
JS
seen=$(timeout 40 node show.mjs 2>/dev/null | grep paid)
echo "Node $(node -v)"
echo "$seen"
[ "$seen" = '@mastra/mcp: break: paid 2, result; error: paid 2, result; isError: paid 1, error; 502: paid 1, error
@modelcontextprotocol/client: break: paid 1, error; error: paid 1, error; isError: paid 1, error; 502: paid 1, error' ]
