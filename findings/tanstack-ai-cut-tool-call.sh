#!/usr/bin/env bash
# @tanstack/ai 0.58.0 with @tanstack/ai-openai 0.23.1 runs a tool without any arguments where its arguments were cut off.
#
# Expected: a call whose arguments are no whole JSON is an error for the model, or ends the run; no tool gets it. A model that
# comes to its limit of tokens, or a stream that ends early, cuts a call anywhere.
# Seen: arguments that cannot be parsed become `{}`, which a schema with optional fields alone accepts. The tool runs, with its
# defaults: here it removes all in place of /srv/tmp. The model reads that the tool is done, and only the log has the error of
# the parser. That is so after the finish reason `length`, and after a clean end without a reason; the events report both as
# `tool_calls`. With a required field the tool does not run. A broken connection ends the run with RUN_ERROR.
# So: for these packages, a tool that changes anything has a required field, best the one that limits what it does. A server
# that cuts a stream must break the connection.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --legacy-peer-deps @tanstack/ai@0.58.0 @tanstack/ai-openai@0.23.1 openai@6.49.0 zod@4.6.7
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { chat, toolDefinition } from '@tanstack/ai';
import { createOpenaiChatCompletions } from '@tanstack/ai-openai';
import { z } from 'zod';

let end;
/** A model whose call of the tool ends in the middle of its arguments, and that answers when it has a result. */
const server = createServer(async (request, response) => {
  const { messages } = JSON.parse(await text(request));
  const send = (delta, finish_reason = null) => {
    const choices = [{ index: 0, delta, finish_reason }];
    const chunk = { id: '1', object: 'chat.completion.chunk', created: 1, model: 'model', choices };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (messages.at(-1).role === 'tool') {
    send({ role: 'assistant', content: 'Done' }, 'stop');
    return response.end('data: [DONE]\n\n');
  }
  const call = { index: 0, id: 'call', type: 'function', function: { name: 'remove', arguments: '{"path":"/srv/t' } };
  send({ role: 'assistant', tool_calls: [call] });
  if (end === 'break') return setTimeout(() => response.destroy(), 200);
  if (end === 'length') send({}, 'length');
  response.end(end === 'length' ? 'data: [DONE]\n\n' : '');
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const options = { baseURL: `http://127.0.0.1:${server.address().port}`, maxRetries: 0 };

console.error = () => {};
for (const [name, path] of [['optional', z.string().optional()], ['required', z.string()]])
  for (end of ['length', 'clean end', 'break']) {
    const seen = [];
    const remove = toolDefinition({ name: 'remove', description: 'Removes', inputSchema: z.object({ path }) }).server(
      async (input) => {
        seen.push(`removes ${input.path ?? 'all'}`);
        return 'done';
      },
    );
    const adapter = createOpenaiChatCompletions('gpt-4o', 'none', options);
    const messages = [{ role: 'user', content: 'Clean up' }];
    for await (const { type, metadata } of chat({ adapter, messages, tools: [remove] })) {
      if (type === 'RUN_FINISHED') seen.push(`finished ${metadata.tanstack.finishReason}`);
      if (type === 'RUN_ERROR') seen.push('RUN_ERROR');
    }
    console.log(`seen: ${name}, ${end}: ${seen.join(', ')}`);
  }
process.exit(0);
JS
seen=$(timeout 40 node show.mjs 2>/dev/null | sed -n 's/^seen: //p')
echo "Node $(node -v)"
echo "$seen"
[ "$seen" = 'optional, length: removes all, finished tool_calls, finished stop
optional, clean end: removes all, finished tool_calls, finished stop
optional, break: RUN_ERROR
required, length: finished tool_calls, finished stop
required, clean end: finished tool_calls, finished stop
required, break: RUN_ERROR' ]
