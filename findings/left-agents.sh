#!/usr/bin/env bash
# Agents of genkit 1.42.0, @llamaindex/workflow 1.1.25 and ai 6.0.326 run their tools after the reader of their stream has left.
#
# Expected: `break` in a loop over the stream of an agent ends the agent, as it ends a generator, so no tool begins after it. That
# is so in @ax-llm/ax 24.0.21, whose agent goes on only when its reader asks for more.
# Seen: a reader leaves at the first word, and the model calls a tool half a second later: the tool runs. In genkit and llamaindex
# the model is even called again, with the result, and each further tool that it wants runs, too. In ai the tool is the last.
# An AbortSignal stops genkit and ai before the tool. llamaindex takes none.
# So: a server that stops reading because its user has cancelled has not stopped the payment. Pass a signal and abort it, and let
# each tool with an effect look at a flag of its own before it begins.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --legacy-peer-deps --omit=optional genkit@1.42.0 @genkit-ai/compat-oai@1.42.0 \
  @llamaindex/workflow@1.1.25 @llamaindex/openai@0.4.23 @llamaindex/core@0.6.23 @llamaindex/env@0.1.31 ai@6.0.326 \
  @ai-sdk/openai-compatible@2.0.92 @ax-llm/ax@24.0.21 @cfworker/json-schema@4.1.1 zod@4.1.13
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ai as axService, ax } from '@ax-llm/ax';
import { openAICompatible } from '@genkit-ai/compat-oai';
import { tool as llamaTool } from '@llamaindex/core/tools';
import { openai } from '@llamaindex/openai';
import { agent, agentStreamEvent } from '@llamaindex/workflow';
import { stepCountIs, streamText, tool } from 'ai';
import { genkit, z as genkitZ } from 'genkit';
import { z } from 'zod';

let paid = 0;
let calls = 0;
// A model that says a word, and calls the tool half a second later.
const server = createServer(async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  calls++;
  const write = (delta, finish_reason = null) => {
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  write({ role: 'assistant', content: 'Well. ' });
  await wait(500);
  const called = JSON.parse(body).messages.some(({ role }) => role === 'tool');
  const call = { index: 0, id: 'c', type: 'function', function: { name: 'pay', arguments: '{"amount":5}' } };
  if (!called) write({ tool_calls: [call] });
  write({}, called ? 'stop' : 'tool_calls');
  response.end('data: [DONE]\n\n');
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}/v1`;
const pay = async () => {
  paid++;
  return 'paid';
};
const what = { name: 'pay', description: 'Pays.' };
const parameters = z.object({ amount: z.number() });

const kit = genkit({ plugins: [openAICompatible({ name: 'local', apiKey: 'none', baseURL: url })] });
const kitPay = kit.defineTool({ ...what, inputSchema: genkitZ.object({ amount: genkitZ.number() }) }, pay);
const kitStream = (abortSignal) => kit.generateStream({ model: 'local/m', prompt: 'Hi', tools: [kitPay], abortSignal });
const llm = openai({ model: 'gpt-4o', apiKey: 'none', baseURL: url, maxRetries: 0 });
const llamaPay = llamaTool({ ...what, parameters, execute: pay });
const model = createOpenAICompatible({ name: 'local', baseURL: url })('m');
const tools = { pay: tool({ description: what.description, inputSchema: parameters, execute: pay }) };
const schema = { type: 'object', properties: { amount: { type: 'number' } } };
const service = axService({ name: 'openai', apiKey: 'none', apiURL: url, config: { model: 'm', stream: true } });
const program = () => ax('question:string -> answer:string', { functions: [{ ...what, parameters: schema, func: pay }] });

/** Each returns a stream of texts and other values. */
const agents = {
  genkit: async (signal) => {
    const { stream, response } = kitStream(signal);
    response.catch(() => {});
    return stream;
  },
  llamaindex: async () => agent({ llm, tools: [llamaPay] }).runStream('Hi'),
  ai: async (abortSignal) => streamText({ model, prompt: 'Hi', tools, stopWhen: stepCountIs(5), abortSignal }).textStream,
  ax: async (abortSignal) => program().streamingForward(service, { question: 'Hi' }, { abortSignal }),
};
const isText = (value) =>
  typeof value === 'string' || value.text || value.delta?.answer || (agentStreamEvent.include(value) && value.data.delta);
process.on('unhandledRejection', () => {});
const seen = [];
for (const [name, make] of Object.entries(agents)) {
  for (const way of ['break', 'abort']) {
    const stop = new AbortController();
    paid = calls = 0;
    try {
      for await (const value of await make(stop.signal)) {
        if (!isText(value)) continue;
        if (way === 'abort') stop.abort();
        break;
      }
    } catch {}
    await wait(2_000);
    seen.push(`${name}, ${way}: ${calls} calls of the model, ${paid} of the tool`);
  }
}
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 50 node show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = 'genkit, break: 2 calls of the model, 1 of the tool; genkit, abort: 1 calls of the model, 0 of the tool; llamaindex, break: 2 calls of the model, 1 of the tool; llamaindex, abort: 2 calls of the model, 1 of the tool; ai, break: 1 calls of the model, 1 of the tool; ai, abort: 1 calls of the model, 0 of the tool; ax, break: 1 calls of the model, 0 of the tool; ax, abort: 1 calls of the model, 0 of the tool' ]
