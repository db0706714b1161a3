#!/usr/bin/env bash
# ai 5.0.277, 6.0.326 and 7.0.173: where the connection to the model breaks in mid-answer, `streamText` calls no `onError`, and
# its UI stream hands half an answer to `onFinish` as a whole one.
#
# Expected: errors after the start become parts of the stream, and `onError` has them, as it is the place to log them. That is so
# where the model writes an error into its stream. The `onFinish` that stores the message can tell it from a whole one.
# Seen: where the connection breaks, neither `onError` nor `onFinish` of `streamText` is called, and `fullStream` throws in place
# of a part `error`. `onFinish` of `toUIMessageStream` is called, with the half message, `isAborted: false` and no finish reason.
# All of that comes from the providers of the AI SDK, which throw in their streams. @openrouter/ai-sdk-provider 2.10.0 makes the
# break an error of the stream, and then everything is as expected.
# So: pipe by `createUIMessageStream` and `writer.merge`, which makes an error of it; store no message without a finish reason; and
# count broken answers at the loop or the span, not in `onError`. A server of models that fails ends with an error in the stream.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --legacy-peer-deps ai5@npm:ai@5.0.277 ai6@npm:ai@6.0.326 ai7@npm:ai@7.0.173 \
  compatible1@npm:@ai-sdk/openai-compatible@1.0.61 compatible2@npm:@ai-sdk/openai-compatible@2.0.92 \
  compatible3@npm:@ai-sdk/openai-compatible@3.0.92 @openrouter/ai-sdk-provider@2.10.0 zod@4.6.7
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

async function listen(handler) {
  const server = createServer(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}`;
}

/** A model that fails after half an answer: the model `error` says so in its stream, the model `break` breaks the connection. */
const baseURL = await listen(async (request, response) => {
  const { model } = JSON.parse(await text(request));
  const choices = [{ index: 0, delta: { role: 'assistant', content: 'Half' }, finish_reason: null }];
  const chunk = { id: '1', object: 'chat.completion.chunk', created: 1, model, choices };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  if (model === 'break') return setTimeout(() => response.destroy(), 200);
  response.end(`data: ${JSON.stringify({ error: { message: 'overloaded', type: 'server_error' } })}\n\ndata: [DONE]\n\n`);
});

const compatible = async (name, model) => {
  const { createOpenAICompatible } = await import(name);
  return createOpenAICompatible({ name: 'model', baseURL, apiKey: 'none' })(model);
};
const openRouter = async (model) => {
  const { createOpenRouter } = await import('@openrouter/ai-sdk-provider');
  return createOpenRouter({ baseURL, apiKey: 'none' })(model);
};
const versions = {
  'ai 5': ['ai5', (model) => compatible('compatible1', model)],
  'ai 6': ['ai6', (model) => compatible('compatible2', model)],
  'ai 7': ['ai7', (model) => compatible('compatible3', model)],
  'ai 6, OpenRouter': ['ai6', openRouter],
};

for (const [name, [ai, modelOf]] of Object.entries(versions))
  for (const end of ['error', 'break']) {
    const { streamText } = await import(ai);
    const model = await modelOf(end);
    const seen = [];
    const answer = () =>
      streamText({
        model,
        prompt: 'Hello',
        onError: () => seen.push('onError'),
        onFinish: ({ finishReason }) => seen.push(`onFinish ${finishReason}`),
      });
    const onFinish = ({ responseMessage, isAborted, finishReason }) => {
      const said = responseMessage.parts.map((part) => part.text).join('');
      seen.push(`UI onFinish "${said}" isAborted ${isAborted} ${finishReason}`);
    };
    try {
      for await (const { type } of answer().toUIMessageStream({ onFinish })) if (type === 'error') seen.push('part error');
    } catch {
      seen.push('throws');
    }
    console.log(`${name}, ${end}: ${seen.join(', ')}`);
  }
process.exit(0);
JS
seen=$(timeout 40 node show.mjs 2>/dev/null)
echo "Node $(node -v)"
echo "$seen"
expected() {
  cat <<TEXT
$1, error: onError, part error, onFinish error, UI onFinish "Half" isAborted false error
TEXT
}
[ "$seen" = "$(
  for version in 'ai 5' 'ai 6' 'ai 7'; do
    expected "$version"
    echo "$version, break: UI onFinish \"Half\" isAborted false undefined, throws"
  done
  expected 'ai 6, OpenRouter'
  expected 'ai 6, OpenRouter' | sed 's/, error/, break/'
)" ]
