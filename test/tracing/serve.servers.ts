import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { createRun, projectFolder, startRivulet } from '../cli/server-project.ts';
import { framesUntil } from '../support/serve.ts';

const modules = resolve(import.meta.dirname, '../../node_modules');
const packageUrl = (name: string): string => pathToFileURL(join(modules, name)).href;

/** An SDK as users set it up for `node --import`; it writes the spans into a file when they are flushed. */
const setUp = `
import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';
const load = createRequire('${packageUrl('x')}');
const { trace, context, propagation } = load('@opentelemetry/api');
const { AsyncLocalStorageContextManager } = load('@opentelemetry/context-async-hooks');
const { W3CTraceContextPropagator } = load('@opentelemetry/core');
const { BasicTracerProvider, BatchSpanProcessor } = load('@opentelemetry/sdk-trace-base');
const exporter = {
  export(spans, done) {
    for (const { name, links, attributes, parentSpanContext } of spans)
      appendFileSync('spans.jsonl', JSON.stringify({ name, links, attributes, parentSpanContext }) + '\\n');
    done({ code: 0 });
  },
  async shutdown() {},
};
const processor = new BatchSpanProcessor(exporter, { scheduledDelayMillis: 3_600_000 });
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [processor] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
`;

const agents = `
import { defineAgent } from 'rivulet';
export default defineAgent({ name: 'traced', description: 'Says its trace, then waits.' }, async function* (_, own) {
  const before = await own.step('where', async () => own.trace().traceparent);
  yield before + ' ';
  await own.await('Go on?');
  yield own.trace().traceparent;
}, { durable: true });
`;

const answer = { mode: 'sync', await_resume: { type: 'message', message: { parts: [{ content: 'yes' }] } } };

it('rivulet serve exports all spans before it ends, and links those of a killed process', async () => {
  const folder = projectFolder({ 'otel.mjs': setUp, 'agents/traced.js': agents });
  const env = { NODE_OPTIONS: '--import ./otel.mjs' };
  const first = startRivulet(folder, ['serve', '--port', '0'], undefined, env);
  const before = await first.url();
  const { run_id } = await createRun(before, 'traced', { mode: 'async' });
  const events = await fetch(`${before}/runs/${run_id}/events`, { headers: { accept: 'text/event-stream' } });
  await framesUntil(events, ({ event }) => event.type === 'run.awaiting');
  expect(await first.stop('SIGKILL')).toBe('SIGKILL');

  const second = startRivulet(folder, ['serve', '--port', '0', '--trust-trace-context'], undefined, env);
  const url = await second.url();
  const caller = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
  const run = await (
    await fetch(`${url}/runs/${run_id}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent: `00-${caller.traceId}-${caller.spanId}-01` },
      body: JSON.stringify(answer),
    })
  ).json();
  expect(run.status).toBe('completed');
  await second.stop('SIGTERM');
  const spans = readFileSync(join(folder, 'spans.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  // The second process re-enters the run up to its question, and then goes on with the reply.
  expect(spans.map(({ name }) => name)).toEqual(['invoke_agent traced', 'invoke_agent traced']);
  const [killed] = run.output[0].parts[0].content.split(' ');
  const [, traceId, spanId] = killed.split('-');
  const own = (status: string): object => ({ 'rivulet.run.id': run_id, 'rivulet.run.status': status });
  expect(spans).toMatchObject([
    { links: [{ context: { traceId, spanId } }], attributes: own('awaiting') },
    { parentSpanContext: caller, attributes: own('completed') },
  ]);
  expect(spans[1].links).toHaveLength(1);
});
