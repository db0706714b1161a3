#!/usr/bin/env bash
# langchain 1.5.14 and @langchain/langgraph 1.7.3 run a tool whose call was cut off, with the arguments that came, if they stream.
#
# Expected: arguments that are no whole JSON are an invalid call, which no tool gets: a model that comes to its limit of tokens,
# or a stream that ends early, cuts a call anywhere. That is so with `invoke`, in ai 6.0.326 and in @openai/agents 0.20.0.
# Seen: with `stream` and the mode `messages`, the chunks are joined, and what is missing is made up: quotes and brackets are
# closed, a key without a value is dropped, and a cut text is a whole one. The call is valid then, `invalid_tool_calls` is empty,
# and the tool runs: here, all of /srv is removed, without `dry_run`.
# So: a tool that changes anything gets all its arguments as required ones, with the most telling last; or the agent ends where
# `response_metadata.finish_reason` is neither `tool_calls` nor `stop`. A server that cuts a stream must break the connection.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund langchain@1.5.14 @langchain/langgraph@1.7.3 @langchain/core@1.4.0 @langchain/openai@1.5.8 \
  ai@6.0.326 @ai-sdk/openai-compatible@2.0.92 @openai/agents@0.20.0 openai@6.49.0 zod@4.6.7
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool as agentsTool } from '@openai/agents';
import { jsonSchema, stepCountIs, streamText, tool as aiTool } from 'ai';
import { createAgent, tool } from 'langchain';
import OpenAI from 'openai';

setTracingDisabled(true);

/** A model that calls a tool, and is cut off in its arguments. After the tool's result, it says "ok". */
const text = '{"recursive":true,"path":"/srv/data/old","dry_run":true}';
let end;
const server = createServer(async (request, response) => {
  const { messages, stream } = await json(request);
  const done = messages.some(({ role }) => role === 'tool');
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'remove', arguments: text.split('/data')[0] } };
  const message = { role: 'assistant', ...(done ? { content: 'ok' } : { content: null, tool_calls: [call] }) };
  const reason = done ? 'stop' : 'length';
  const head = { id: `answer_${messages.length}`, created: 1, model: 'm' };
  if (!stream) {
    const choices = [{ index: 0, message, finish_reason: reason }];
    response.writeHead(200, { 'content-type': 'application/json' });
    return response.end(JSON.stringify({ ...head, object: 'chat.completion', choices }));
  }
  const send = (delta, finish_reason = null) => {
    const choices = [{ index: 0, delta, finish_reason }];
    response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices })}\n\n`);
  };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  send(message);
  if (done || end === 'limit') send({}, reason);
  response.end(done || end === 'limit' ? 'data: [DONE]\n\n' : undefined);
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const baseURL = `http://127.0.0.1:${server.address().port}`;

const properties = { recursive: { type: 'boolean' }, path: { type: 'string' }, dry_run: { type: 'boolean' } };
const schema = { type: 'object', properties, required: ['path'], additionalProperties: false };
const about = { name: 'remove', description: 'Removes a folder.' };
let ran;
const execute = async (input) => {
  ran = `runs with ${JSON.stringify(input)}`;
  return 'removed';
};
const model = new ChatOpenAI({ model: 'm', apiKey: 'none', maxRetries: 0, configuration: { baseURL } });
const tools = [tool(execute, { ...about, schema })];
const asked = { messages: [{ role: 'user', content: 'Clean up' }] };
const drain = async (values) => {
  for await (const _ of values);
};
const streamed = async (agent) => drain(await agent.stream(asked, { streamMode: 'messages' }));
const agents = {
  'langchain, invoke': () => createAgent({ model, tools }).invoke(asked),
  'langchain, stream': () => streamed(createAgent({ model, tools })),
  'langgraph, stream': () => streamed(createReactAgent({ llm: model, tools })),
  'ai, stream': () => {
    const remove = aiTool({ ...about, inputSchema: jsonSchema(schema), execute });
    const provider = createOpenAICompatible({ name: 'x', baseURL });
    const onError = () => {};
    return drain(streamText({ model: provider('m'), prompt: 'Clean up', tools: { remove }, stopWhen: stepCountIs(3), onError }).fullStream);
  },
  '@openai/agents, stream': async () => {
    const remove = agentsTool({ ...about, parameters: schema, strict: false, execute });
    const client = new OpenAI({ baseURL, apiKey: 'none' });
    const agent = new Agent({ name: 'a', tools: [remove], model: new OpenAIChatCompletionsModel(client, 'm') });
    await drain(await run(agent, 'Clean up', { stream: true }));
  },
};
for (const [name, work] of Object.entries(agents)) {
  const seen = [];
  for (end of name.endsWith('invoke') ? ['limit'] : ['limit', 'early end']) {
    ran = 'does not run';
    await work().catch(() => {});
    seen.push(`${end}: ${ran}`);
  }
  console.log(`${name}: ${seen.join(', ')}`);
}
process.exit(0);
JS
seen=$(timeout 90 node show.mjs 2>errors | paste -sd ';') || cat errors
echo "Node $(node -v): $seen"
half='runs with {"recursive":true,"path":"/srv"}'
[ "$seen" = "langchain, invoke: limit: does not run;langchain, stream: limit: $half, early end: $half;langgraph, stream: limit: $half, early end: $half;ai, stream: limit: does not run, early end: does not run;@openai/agents, stream: limit: does not run, early end: does not run" ]
