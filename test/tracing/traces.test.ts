import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { concat, map, NEVER, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { AgentError, createRuntime, createServer, type Run } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { agent, durable, Tap } from '../support/agents.ts';
import { Lines } from '../support/lines.ts';
import { nodes } from '../support/nodes.ts';
import { ask, finished, type Served, serveApi } from '../support/serve.ts';
import { idOf, linksOf, Sdk } from '../support/tracing.ts';

const sdk = Sdk.use();

const reply = (content: string): object => ({
  mode: 'sync',
  await_resume: { type: 'message', message: { role: 'user', parts: [{ content }] } },
});
const post = async (served: Served, path: string, body: object, headers?: Record<string, string>): Promise<Run> =>
  (await served.post(path, body, headers)).json();

/** A span as an instrumented client of a model, or of HTTP, makes it. */
const request = (name: string): void => trace.getTracer('a client').startSpan(name).end();

const traceId = '0af7651916cd43dd8448eb211c80319c';
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

const inner = agent('inner', async (_, { step }) => {
  await step('look', async () => request('GET inside'));
  return 'inner. ';
});
const outer = agent('outer', async (_, own) => {
  await own.step('fetch', async () => {
    request('GET step');
    return 'fetched';
  });
  request('chat model');
  const said = await own.call('inner', 'hi');
  request('chat again');
  return [said.parts[0]?.content ?? '', 'outer.'];
});

describe('the log lines of a request and of an ended run', () => {
  const logged = async () => {
    const lines = new Lines();
    const served = await serveApi([outer, inner], { logger: { level: 'info', stream: lines.stream } });
    return { served, lines };
  };

  it('name the last span of the run, and the span that was active when the request came', async () => {
    const { served, lines } = await logged();
    const active = trace.getTracer('http').startSpan('POST /runs');
    // As the instrumentation of `http` does it.
    const listener = served.app.server.listeners('request')[0];
    if (listener === undefined) throw new Error('the server has no listener');
    served.app.server.removeAllListeners('request').on('request', (...args) => {
      context.with(trace.setSpan(context.active(), active), () => void listener.apply(served.app.server, args));
    });
    const { run_id } = await post(served, '/runs', ask('outer'));
    active.end();
    const root = await sdk.one('invoke_agent outer');
    const { traceId: trace_id, spanId: span_id } = active.spanContext();
    expect(await lines.find(({ msg }) => msg === 'request')).toMatchObject({ run_id, trace_id, span_id });
    expect(await lines.find(({ msg }) => msg === 'run completed')).toMatchObject({
      run_id,
      trace_id,
      span_id: idOf(root),
    });
  });

  it('name no span where none is active, and none that was only in headers', async () => {
    const { served, lines } = await logged();
    await post(served, '/runs', ask('inner'), { traceparent });
    const request = await lines.find(({ msg }) => msg === 'request');
    expect(request).not.toHaveProperty('trace_id');
    expect(request).not.toHaveProperty('span_id');
    const root = await sdk.one('invoke_agent inner');
    expect((await lines.find(({ msg }) => msg === 'run completed')).trace_id).toBe(root.spanContext().traceId);
  });
});

describe('a run with steps and calls', () => {
  for (const isDurable of [false, true]) {
    it(`is a tree of spans${isDurable ? ', and so is a durable one' : ''}`, async () => {
      const served = await serveApi([isDurable ? { ...outer, options: { durable: true } } : outer, inner]);
      const run = await post(served, '/runs', ask('outer'));
      expect(run.status).toBe('completed');
      const root = await sdk.one('invoke_agent outer');
      const called = await sdk.one('invoke_agent inner');
      const [fetched, looked] = [await sdk.one('rivulet.step fetch'), await sdk.one('rivulet.step look')];
      const parents = Object.fromEntries(sdk.spans.map((span) => [span.name, span.parentSpanContext?.spanId]));
      expect(parents).toEqual({
        'invoke_agent outer': undefined,
        'rivulet.step fetch': idOf(root),
        'GET step': idOf(fetched),
        'chat model': idOf(root),
        'invoke_agent inner': idOf(root),
        'rivulet.step look': idOf(called),
        'GET inside': idOf(looked),
        'chat again': idOf(root),
      });
      expect(new Set(sdk.spans.map((span) => span.spanContext().traceId)).size).toBe(1);
      expect(root).toMatchObject({ kind: SpanKind.INTERNAL, links: [], status: { code: SpanStatusCode.UNSET } });
      expect(root.attributes).toMatchObject({
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.provider.name': 'rivulet',
        'gen_ai.agent.name': 'outer',
        'gen_ai.agent.id': 'outer',
        'gen_ai.agent.description': "The test's outer.",
        'gen_ai.conversation.id': run.session_id,
        'gen_ai.usage.output_tokens': 2,
        'rivulet.run.id': run.run_id,
        'rivulet.run.status': 'completed',
        'rivulet.run.attempt': 0,
        'rivulet.run.epoch': 1,
      });
      expect(root.attributes['gen_ai.response.time_to_first_chunk']).toBeGreaterThan(0);
      expect(fetched.attributes).toEqual({ 'rivulet.outcome': 'completed' });
      expect(called.attributes).toMatchObject({ 'gen_ai.agent.name': 'inner', 'rivulet.outcome': 'completed' });
    });
  }

  it('has a span for each call of a tool, with the agent that made it', async () => {
    const calling = agent('calling', async function* (_, context) {
      yield* context.tool('look-up', { city: 'Oslo' }, () => ({ degrees: 20 }));
    });
    const served = await serveApi([calling]);
    await post(served, '/runs', ask('calling'));
    const root = await sdk.one('invoke_agent calling');
    const called = await sdk.one('execute_tool look-up');
    expect(called.parentSpanContext?.spanId).toBe(idOf(root));
    expect(called.attributes).toEqual({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'look-up',
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': expect.any(String),
      'gen_ai.agent.name': 'calling',
      'rivulet.outcome': 'completed',
    });
  });

  it('has the tokens of the prompt and of the output apart, where the agent reports them', async () => {
    const using = agent('using', (input, { usage }) => {
      usage(JSON.parse(input[0]?.parts[0]?.content ?? ''));
      return 'x';
    });
    const served = await serveApi([using]);
    const reported = [
      { input_tokens: 1_000, output_tokens: 20 },
      { tokens: 1_020, input_tokens: 1_000 },
      { tokens: 20 },
    ];
    for (const one of reported) await post(served, '/runs', ask('using', JSON.stringify(one)));
    const spans = await sdk.named('invoke_agent using', 3);
    const tokens = (name: string) => spans.map(({ attributes }) => attributes[`gen_ai.usage.${name}_tokens`]);
    expect(tokens('input')).toEqual([1_000, 1_000, undefined]);
    expect(tokens('output')).toEqual([20, 20, 20]);
  });

  it('gives what follows from the values of a step to the agent, not to the step', async () => {
    const piped = agent('piped', (_, { step }) =>
      step('one', () => of('a')).pipe(
        map((value) => {
          request(`after ${value}`);
          return value;
        }),
      ),
    );
    await post(await serveApi([piped]), '/runs', ask('piped'));
    const root = await sdk.one('invoke_agent piped');
    expect((await sdk.one('after a')).parentSpanContext?.spanId).toBe(idOf(root));
  });

  it('shows what failed, by its code', async () => {
    const failing = agent('failing', (_, { step }) =>
      step('work', () => throwError(() => new AgentError('over_quota', 'no more today'))),
    );
    await post(await serveApi([failing]), '/runs', ask('failing'));
    const failed = { attributes: { 'error.type': 'over_quota' }, status: { code: SpanStatusCode.ERROR } };
    expect(await sdk.one('rivulet.step work')).toMatchObject(failed);
    expect(await sdk.one('invoke_agent failing')).toMatchObject({
      attributes: { ...failed.attributes, 'rivulet.run.status': 'failed' },
      status: { code: SpanStatusCode.ERROR, message: 'no more today' },
    });
  });

  it('ends its spans when it is cancelled', async () => {
    const tap = new Tap();
    const calling = agent('calling', (_, { call, step }) =>
      concat(
        step('stuck', () => of('x')),
        call('tap', 'hi'),
      ),
    );
    const served = await serveApi([calling, tap.agent]);
    const { run_id } = await post(served, '/runs', ask('calling', 'hi', { mode: 'async' }));
    await tap.started();
    await served.post(`/runs/${run_id}/cancel`);
    expect((await sdk.one('invoke_agent calling')).attributes['rivulet.run.status']).toBe('cancelled');
    expect(await sdk.one('invoke_agent tap')).toMatchObject({
      attributes: { 'rivulet.outcome': 'cancelled' },
      status: { code: SpanStatusCode.UNSET },
    });
  });

  it('is measured by the metric of the conventions', async () => {
    await post(await serveApi([agent('timed', () => 'x')]), '/runs', ask('timed'));
    await sdk.one('invoke_agent timed');
    expect(await sdk.points('gen_ai.invoke_agent.duration')).toContainEqual(
      expect.objectContaining({
        attributes: {
          'gen_ai.operation.name': 'invoke_agent',
          'gen_ai.provider.name': 'rivulet',
          'gen_ai.agent.name': 'timed',
        },
        value: expect.objectContaining({ count: 1 }),
      }),
    );
  });
});

/** Asks in the agent that it calls; afterwards its `async` code goes on where it was. */
const asking = agent('asking', async (_, own) => {
  const { message } = await own.await('Well?');
  request('chat after');
  return `You said ${message.parts[0]?.content}.`;
});

describe('a run that awaits', () => {
  it('ends its span, and goes on in a new one that links to it, below the request of the reply', async () => {
    const served = await serveApi([asking], { trustTraceContext: true });
    const run = await post(served, '/runs', ask('asking'));
    const first = await sdk.one('invoke_agent asking');
    expect(first.attributes['rivulet.run.status']).toBe('awaiting');
    expect(first.status.code).toBe(SpanStatusCode.UNSET);
    await post(served, `/runs/${run.run_id}`, reply('yes'), { traceparent });
    const [, second] = await sdk.named('invoke_agent asking', 2);
    expect(second?.attributes['rivulet.run.status']).toBe('completed');
    expect(second?.parentSpanContext).toMatchObject({ traceId, spanId: 'b7ad6b7169203331' });
    expect(second && linksOf(second)).toEqual([idOf(first)]);
    expect((await sdk.one('chat after')).parentSpanContext?.spanId).toBe(second && idOf(second));
  });

  it('cuts the spans of called agents as well', async () => {
    const calling = agent('calling', (_, { call }) => call('asking', 'hi'));
    const served = await serveApi([calling, asking]);
    const { run_id } = await post(served, '/runs', ask('calling'));
    await sdk.one('invoke_agent asking');
    await post(served, `/runs/${run_id}`, reply('yes'));
    const [, root] = await sdk.named('invoke_agent calling', 2);
    const [before, after] = await sdk.named('invoke_agent asking', 2);
    expect(before?.attributes['rivulet.outcome']).toBe('awaiting');
    expect(after?.parentSpanContext?.spanId).toBe(root && idOf(root));
    expect(after && linksOf(after)).toEqual([before && idOf(before)]);
    expect((await sdk.one('chat after')).parentSpanContext?.spanId).toBe(after && idOf(after));
  });

  for (const isDurable of [true, false]) {
    it(`goes on from another node, ${isDurable ? 'durable' : 'not durable'}`, async () => {
      const { node, queue } = nodes([isDurable ? { ...asking, options: { durable: true } } : asking]);
      const trusted = { trustTraceContext: true, limits: { passivateAfter: 1, sweepInterval: 5 } };
      const [a, b] = [await node('a', trusted), await node('b', trusted)];
      queue.next = 'b';
      const { run_id } = await post(a, '/runs', ask('asking'), { traceparent: traceparent.replace('b7', 'c8') });
      const first = await sdk.one('invoke_agent asking');
      expect(first.parentSpanContext).toMatchObject({ traceId, spanId: 'c8ad6b7169203331' });
      // The durable run leaves the memory of b, and a takes it.
      if (isDurable) {
        while (queue.holder(run_id) !== undefined) await new Promise((resolve) => setTimeout(resolve, 5));
        queue.next = 'a';
      }
      await post(a, `/runs/${run_id}`, reply('yes'), { traceparent, tracestate: 'vendor=1' });
      await finished(b, run_id);
      const [, second] = await sdk.named('invoke_agent asking', 2);
      expect(second?.parentSpanContext).toMatchObject({ traceId, spanId: 'b7ad6b7169203331' });
      expect(second?.spanContext().traceState?.serialize()).toBe('vendor=1');
      expect(second && linksOf(second)).toEqual([idOf(first)]);
      expect(second?.attributes['rivulet.run.epoch']).toBe(isDurable ? 4 : first.attributes['rivulet.run.epoch']);
      expect((await sdk.one('chat after')).parentSpanContext?.spanId).toBe(second && idOf(second));
    });
  }
});

describe('a durable run after a crash', () => {
  it('has a new trace, which links to the span that was lost', async () => {
    const store = new RecordingStore();
    const started = new Tap('held');
    const holding = durable('holding', (_, own) =>
      concat(
        own.step('one', async () => own.trace().traceparent ?? 'none'),
        own.call('held', 'hi'),
      ),
    );
    const app = await createServer({ agents: [holding, started.agent], store, limits: { shutdownGrace: 0 } });
    const created = await app.inject({ method: 'POST', url: '/runs', payload: ask('holding', 'x', { mode: 'async' }) });
    await started.started();
    // Committed with the value of the step.
    while (!store.commits.flat().some(({ journal = [] }) => journal.some((line) => line.includes('"done":true'))))
      await new Promise((resolve) => setTimeout(resolve, 5));
    const disk = await store.after(store.commits.length);
    await app.close();
    const [lost] = await sdk.named('invoke_agent holding');
    const held = new Tap('held');
    const again = await serveApi([holding, held.agent], { store: disk });
    await held.started();
    held.complete();
    await finished(again, created.json().run_id);
    const [, found] = await sdk.named('invoke_agent holding', 2);
    expect(found?.parentSpanContext).toBeUndefined();
    expect(found && linksOf(found)).toEqual([lost && idOf(lost)]);
    expect(found?.attributes).toMatchObject({ 'rivulet.run.attempt': 1, 'rivulet.run.epoch': 2 });
    // The value of the step came from the journal: its work was done once.
    expect(await sdk.named('rivulet.step one')).toHaveLength(1);
  });
});

describe('the trace context of a request', () => {
  const echo = agent('echo', (_, own) => own.trace().traceparent ?? 'none');

  it('is a link, because strangers can send it', async () => {
    await post(await serveApi([echo]), '/runs', ask('echo'), { traceparent });
    const span = await sdk.one('invoke_agent echo');
    expect(span.parentSpanContext).toBeUndefined();
    expect(span.spanContext().traceId).not.toBe(traceId);
    expect(linksOf(span)).toEqual(['b7ad6b7169203331']);
  });

  it('is the parent where the server trusts it', async () => {
    const run = await post(await serveApi([echo], { trustTraceContext: true }), '/runs', ask('echo'), { traceparent });
    const span = await sdk.one('invoke_agent echo');
    expect(span.parentSpanContext).toMatchObject({ traceId, spanId: 'b7ad6b7169203331' });
    expect(run.output[0]?.parts[0]?.content).toBe(`00-${traceId}-${idOf(span)}-01`);
  });

  it('is left out where it cannot be read', async () => {
    const served = await serveApi([echo], { trustTraceContext: true });
    const run = await post(served, '/runs', ask('echo'), { traceparent: 'something' });
    expect(run.status).toBe('completed');
    expect(await sdk.one('invoke_agent echo')).toMatchObject({ parentSpanContext: undefined, links: [] });
  });

  it('is that of the active span, where the caller has one', async () => {
    await using runtime = await createRuntime({ agents: [echo] });
    const mine = trace.getTracer('an app').startSpan('handle');
    await context.with(trace.setSpan(context.active(), mine), () => runtime.sync('echo', 'hi'));
    expect((await sdk.one('invoke_agent echo')).parentSpanContext?.spanId).toBe(mine.spanContext().spanId);
  });
});

describe('calls of models and tools', () => {
  const started = Date.UTC(2026, 0, 1);
  const caller = agent('caller', async function* (_, { modelCall, step, tool }) {
    await step('answer', async () =>
      modelCall({
        model: 'small',
        provider: 'local',
        started,
        firstToken: started + 250,
        ended: started + 1_000,
        output: [{ role: 'assistant', parts: [{ type: 'text', content: 'secret' }] }],
        input_tokens: 12,
        finish_reasons: ['tool_calls'],
      }),
    );
    yield* tool('weather', { city: 'Oslo' }, () => request('GET weather'));
    modelCall({ model: 'small', started, error: new Error('It is down.') });
  });

  it('are spans with the names of the conventions, and without messages', async () => {
    await post(await serveApi([caller]), '/runs', ask('caller'));
    const root = await sdk.one('invoke_agent caller');
    const [answered, failed] = await sdk.named('chat small', 2);
    const [tool, asked] = [await sdk.one('execute_tool weather'), await sdk.one('GET weather')];
    expect(answered).toMatchObject({ kind: SpanKind.CLIENT, startTime: [started / 1_000, 0], duration: [1, 0] });
    expect(answered?.parentSpanContext?.spanId).toBe(idOf(await sdk.one('rivulet.step answer')));
    expect(answered?.attributes).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'local',
      'gen_ai.request.model': 'small',
      'gen_ai.response.finish_reasons': ['tool_calls'],
      'gen_ai.usage.input_tokens': 12,
      'gen_ai.response.time_to_first_chunk': 0.25,
    });
    expect(tool.parentSpanContext?.spanId).toBe(idOf(root));
    expect(asked.parentSpanContext?.spanId).toBe(idOf(tool));
    expect(tool.attributes).toEqual({
      'gen_ai.agent.name': 'caller',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'weather',
      'gen_ai.tool.call.id': 'tool/1',
      'gen_ai.tool.type': 'function',
      'rivulet.outcome': 'completed',
    });
    expect(failed).toMatchObject({
      status: { code: SpanStatusCode.ERROR, message: 'It is down.' },
      attributes: { 'error.type': 'server_error' },
    });
    expect(failed?.parentSpanContext?.spanId).toBe(idOf(root));
  });
});

describe('messages', () => {
  const name = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';

  it('are not in spans', async () => {
    await post(await serveApi([agent('quiet', () => 'secret')]), '/runs', ask('quiet', 'secret'));
    expect(JSON.stringify((await sdk.one('invoke_agent quiet')).attributes)).not.toContain('secret');
  });

  it('are in spans where the variable of the conventions asks for them, cut to 8 kB', async () => {
    process.env[name] = 'SPAN_ONLY';
    try {
      const long = agent('long', () => ['"'.repeat(20_000), { content_url: 'https://example.com/a.png' }]);
      await post(await serveApi([long]), '/runs', ask('long', 'Hello'));
    } finally {
      delete process.env[name];
    }
    const { attributes } = await sdk.one('invoke_agent long');
    expect(JSON.parse(String(attributes['gen_ai.input.messages']))).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'Hello' }] },
    ]);
    const output = String(attributes['gen_ai.output.messages']);
    expect(output.length).toBeLessThanOrEqual(8 * 1024);
    expect(JSON.parse(output)[0].parts[0].content).toMatch(/^"{1000,}$/);
  });
});

describe('an execution that leaves the process', () => {
  it('ends its span', async () => {
    const waiting = durable('waiting', () => NEVER);
    const app = await createServer({ agents: [waiting], store: new MemoryStore(), limits: { shutdownGrace: 0 } });
    await app.inject({ method: 'POST', url: '/runs', payload: ask('waiting', 'x', { mode: 'async' }) });
    await app.close();
    expect((await sdk.one('invoke_agent waiting')).attributes['rivulet.run.status']).toBe('in-progress');
  });
});
