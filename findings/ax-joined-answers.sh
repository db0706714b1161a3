#!/usr/bin/env bash
# @ax-llm/ax 24.0.21 joins the start of an answer that broke with the answer of its next attempt, and returns both as one.
#
# Expected: where the connection of a streamed answer breaks, the call fails, as in openai 6.49.0; or it is made again, and the
# result is the second answer alone. Deltas of another attempt have another `version`, so that a reader drops the first.
# Seen: ax calls the model again, and adds the new text to the text that it has. A model that begins "Yes, " and is cut off, and
# then says "No, do not.", has said "Yes,No, do not." to `forward`, too, which shows no deltas. `version` stays 0, and nothing
# is reported. An answer that ends in the middle without a break, and without a finish reason, is a whole one.
# So: pass `maxRetries: 0` to `forward` and `streamingForward`, so that the call throws. Its description is about corrections only,
# and `retry` of the service does not help.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @ax-llm/ax@24.0.21 openai@6.49.0
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { ai, ax } from '@ax-llm/ax';
import OpenAI from 'openai';

let calls = 0;
let end = 'break';
// A model whose first answer is cut off.
const server = createServer(async (request, response) => {
  for await (const _ of request);
  calls++;
  const write = (delta, finish_reason = null) => {
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  write({ role: 'assistant', content: calls === 1 ? 'Yes, ' : 'No, ' });
  await wait(200);
  if (calls === 1) return end === 'break' ? response.destroy() : response.end();
  write({ content: 'do not.' });
  write({}, 'stop');
  response.end('data: [DONE]\n\n');
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}/v1`;
const service = (options = {}) => ai({ name: 'openai', apiKey: 'none', apiURL: url, config: { model: 'm', stream: true }, options });
const asked = { question: 'Delete all?' };
const program = () => ax('question:string -> answer:string');

async function deltas(stream) {
  const seen = [];
  for await (const { version, delta } of stream) seen.push(`${version}: ${delta.answer}`);
  return seen.join(', ');
}
const ways = {
  forward: async () => (await program().forward(service(), asked)).answer,
  'forward, retry of the service': async () => (await program().forward(service({ retry: { maxRetries: 0 } }), asked)).answer,
  'forward, maxRetries 0': async () => (await program().forward(service(), asked, { maxRetries: 0 })).answer,
  streamingForward: () => deltas(program().streamingForward(service(), asked)),
  openai: async () => {
    let text = '';
    const messages = [{ role: 'user', content: asked.question }];
    const answer = new OpenAI({ baseURL: url, apiKey: 'none' }).chat.completions.create({ model: 'm', messages, stream: true });
    for await (const { choices } of await answer) text += choices[0].delta.content ?? '';
    return text;
  },
};
const seen = [];
for (end of ['break', 'early end']) {
  for (const [name, call] of Object.entries(ways)) {
    calls = 0;
    seen.push(`${end}, ${name}: ${await call().catch(() => 'throws')}`);
  }
}
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 50 node show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = 'break, forward: Yes,No, do not.; break, forward, retry of the service: Yes,No, do not.; break, forward, maxRetries 0: throws; break, streamingForward: 0: Yes,, 0: No,, 0:  do not.; break, openai: throws; early end, forward: Yes,; early end, forward, retry of the service: Yes,; early end, forward, maxRetries 0: Yes,; early end, streamingForward: 0: Yes,; early end, openai: Yes, ' ]
