#!/usr/bin/env bash
# @opentelemetry/instrumentation-openai 0.21.0 and @traceloop/instrumentation-openai 0.27.0 have no span for an answer that broke.
#
# Expected: the conventions for GenAI give the span of a failed call an `error.type`, so a search for failed calls finds those
# that fail in mid-answer: a broken connection, or an error that the server writes into the stream, when its 200 is long sent.
# Seen: both start a span, end it when the loop over the stream comes to its end, and never end it when the loop throws or is
# left. A span that has not ended is not exported. An answer that ends cleanly in the middle, without a finish reason, has a
# span, and no error. @opentelemetry/instrumentation-undici 0.33.0 has a span for each of these calls.
# So: count failed answers at the server, or at the loop over the stream, and not by these spans. In a trace of a failed run, the
# model call that failed is missing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --legacy-peer-deps openai@6.49.0 @opentelemetry/api@1.9.1 \
  @opentelemetry/sdk-trace-node@2.12.1 @opentelemetry/instrumentation@0.223.0 @opentelemetry/instrumentation-openai@0.21.0 \
  @traceloop/instrumentation-openai@0.27.0 @opentelemetry/instrumentation-undici@0.33.0
cat > show.cjs <<'JS'
const { once } = require('node:events');
const { createServer } = require('node:http');
const { registerInstrumentations } = require('@opentelemetry/instrumentation');
const { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-node');

const name = process.argv[2];
const exporter = new InMemorySpanExporter();
const tracerProvider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
tracerProvider.register();
const Instrumentation = Object.values(require(name)).find((value) => /Instrumentation$/.test(value.name));
registerInstrumentations({ instrumentations: [new Instrumentation()], tracerProvider });
const { OpenAI } = require('openai');

let end;
const chunk = (delta, finish_reason = null) => {
  const choices = [{ index: 0, delta, finish_reason }];
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`;
};
const server = createServer(async (request, response) => {
  for await (const _ of request);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(chunk({ role: 'assistant', content: 'a' }) + chunk({ content: 'b' }));
  if (end === 'finish') response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
  if (end === 'error event') response.end('data: {"error":{"message":"overloaded","type":"server_error"}}\n\n');
  if (end === 'break') setTimeout(() => response.destroy(), 100);
  if (end === 'early end') response.end();
});

(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseURL = `http://127.0.0.1:${server.address().port}`;
  const client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
  const seen = [];
  for (end of ['finish', 'error event', 'break', 'left loop', 'early end']) {
    exporter.reset();
    try {
      const messages = [{ role: 'user', content: 'Hi' }];
      const stream = await client.chat.completions.create({ model: 'm', messages, stream: true });
      for await (const _ of stream) if (end === 'left loop') break;
    } catch {}
    await new Promise((resolve) => setTimeout(resolve, 500));
    const [span] = exporter.getFinishedSpans();
    const state = span?.status.code === 2 || span?.attributes['error.type'] ? 'error' : 'no error';
    seen.push(`${end}: ${span === undefined ? 'no span' : state}`);
  }
  console.log(`${name}: ${seen.join(', ')}`);
  process.exit(0);
})();
JS
seen=
for name in @opentelemetry/instrumentation-openai @traceloop/instrumentation-openai @opentelemetry/instrumentation-undici; do
  seen="$seen$(timeout 30 node show.cjs "$name"); "
done
echo "openai 6.49.0, Node $(node -v): $seen"
[ "$seen" = '@opentelemetry/instrumentation-openai: finish: no error, error event: no span, break: no span, left loop: no span, early end: no error; @traceloop/instrumentation-openai: finish: no error, error event: no span, break: no span, left loop: no span, early end: no error; @opentelemetry/instrumentation-undici: finish: no error, error event: no error, break: error, left loop: no error, early end: no error; ' ]
