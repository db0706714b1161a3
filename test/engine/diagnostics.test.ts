import { createRuntime, type Diagnostic } from 'rivulet';
import { createClient } from 'rivulet/client';
import { lastValueFrom } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { agent, durable } from '../support/agents.ts';
import { ask, serveApi } from '../support/serve.ts';

const input = [{ role: 'user', parts: [{ type: 'text', content: 'Why is the sky blue?' }] }];
const output = [{ role: 'assistant', parts: [{ type: 'text', content: 'It scatters.' }] }];
const tools = [{ name: 'look', description: 'Looks up.', parameters: { type: 'object' } }];
const started = Date.UTC(2026, 0, 1);

const thinker = agent('thinker', async (_, { modelCall, log, step }) => {
  log.info('begins');
  await step('answer', async () => {
    modelCall({
      model: 'small',
      provider: 'local',
      started,
      firstToken: started + 250,
      ended: started + 1_000,
      input,
      tools,
      output,
      input_tokens: 12,
      output_tokens: 3,
      finish_reasons: ['stop'],
    });
  });
  return 'It scatters.';
});

const call = {
  kind: 'model_call',
  at: 2,
  agent_name: 'thinker',
  started_at: '2026-01-01T00:00:00.000Z',
  ended_at: '2026-01-01T00:00:01.000Z',
  request_model: 'small',
  provider_name: 'local',
  response_finish_reasons: ['stop'],
  response_time_to_first_chunk: 0.25,
  usage_input_tokens: 12,
  usage_output_tokens: 3,
};
const content = { input_messages: input, tool_definitions: tools, output_messages: output };

const runtimeOf = async (agents: Parameters<typeof createRuntime>[0]['agents'], captureContent?: boolean) => {
  const runtime = await createRuntime({ agents, ...(captureContent !== undefined && { captureContent }) });
  onTestFinished(() => runtime.close());
  return runtime;
};

describe('the diagnostics of a run', () => {
  it('have its model calls and the lines of its log, where content is captured', async () => {
    const runtime = await runtimeOf([thinker], true);
    const { run_id } = await runtime.sync('thinker', 'hi');
    const { diagnostics, next } = await runtime.diagnostics(run_id);
    expect(next).toBeUndefined();
    expect(diagnostics).toEqual([
      expect.objectContaining({ kind: 'log', agent_name: 'thinker', level: 'info', message: 'begins' }),
      { ...call, ...content },
    ]);
  });

  it('have the figures of model calls alone, where it is not', async () => {
    const runtime = await runtimeOf([thinker]);
    const { run_id } = await runtime.sync('thinker', 'hi');
    expect((await runtime.diagnostics(run_id)).diagnostics).toEqual([call]);
  });

  it('name the agent that reported them, and the calls that led to it', async () => {
    const outer = agent('outer', (_, own) => own.call('thinker', 'hi'));
    const runtime = await runtimeOf([outer, thinker]);
    const { run_id } = await runtime.sync('outer', 'hi');
    expect((await runtime.diagnostics(run_id)).diagnostics).toMatchObject([
      { agent_name: 'thinker', path: 'thinker/1', request_model: 'small' },
    ]);
  });

  it('are in no stream, and no event has another number for them', async () => {
    const { post, get } = await serveApi([thinker]);
    const run = await (await post('/runs', ask('thinker'))).json();
    const events = await (await get(`/runs/${run.run_id}/events`, { accept: 'text/event-stream' })).text();
    expect(events).not.toContain('scatters?');
    expect(events).not.toContain('model_call');
    expect([...events.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('come in pages, and each entry once', async () => {
    const long = 'x'.repeat(200_000);
    const talker = agent('talker', (_, { modelCall }) => {
      for (let index = 0; index < 8; index += 1)
        modelCall({ model: `m${index}`, started, input: [{ role: 'user', parts: [{ type: 'text', content: long }] }] });
      return 'done';
    });
    const { url } = await serveApi([talker]);
    const client = createClient({ url });
    const { run_id } = await client.sync('talker', 'hi');
    const all: Diagnostic[] = [];
    let pages = 0;
    for (let after: number | undefined = 0; after !== undefined; pages += 1) {
      const page = await client.diagnostics(run_id, after);
      all.push(...page.diagnostics);
      after = page.next;
    }
    expect(pages).toBe(2);
    expect(all.map((one) => 'request_model' in one && one.request_model)).toEqual(
      Array.from({ length: 8 }, (_, index) => `m${index}`),
    );
  });

  it('keep the figures of a call whose content is too large, or no JSON', async () => {
    const wild = agent('wild', (_, { modelCall }) => {
      const circle: Record<string, unknown> = {};
      circle.self = circle;
      modelCall({
        model: 'circle',
        started,
        output: [{ role: 'assistant', parts: [{ type: 'data', response: circle }] }],
      });
      modelCall({
        model: 'long',
        started,
        output: [{ role: 'assistant', parts: [{ type: 'text', content: 'x'.repeat(600_000) }] }],
      });
      modelCall({ model: 'failed', started, error: new Error('The server is down.') });
      return 'done';
    });
    const runtime = await runtimeOf([wild], true);
    const { run_id } = await runtime.sync('wild', 'hi');
    const { diagnostics } = await runtime.diagnostics(run_id);
    expect(diagnostics.map((one) => ('input_messages' in one || 'output_messages' in one ? 'content' : ''))).toEqual([
      '',
      '',
      '',
    ]);
    expect(diagnostics).toMatchObject([
      { request_model: 'circle' },
      { request_model: 'long', content_omitted: expect.any(Number) },
      { request_model: 'failed', error: 'The server is down.' },
    ]);
  });

  it('are there once after a durable run has gone on in another process', async () => {
    const asker = durable('asker', async (_, { step, await: asks, modelCall, log }) => {
      log.info('begins');
      await step('answer', async () => modelCall({ model: 'small', started }));
      await asks('Go on?');
      log.info('goes on');
      return 'done';
    });
    const store = new MemoryStore();
    const first = await createRuntime({ agents: [asker], store, captureContent: true });
    const { run_id } = await first.sync('asker', 'hi');
    await first.close();
    const second = await createRuntime({ agents: [asker], store, captureContent: true });
    onTestFinished(() => second.close());
    await second.resume(run_id, 'yes');
    await lastValueFrom(second.watch(run_id));
    const { diagnostics } = await second.diagnostics(run_id);
    expect(diagnostics.map((one: Diagnostic) => ('message' in one ? one.message : one.request_model))).toEqual([
      'begins',
      'small',
      'goes on',
    ]);
  });

  it('are only for the scope admin, and without content, where callers are authenticated', async () => {
    const scopes = ['runs:read', 'runs:write'];
    const served = await serveApi([thinker], {
      auth: {
        authenticate: ({ headers: { caller } }) =>
          caller === 'root' ? { id: 'root', scopes: [...scopes, 'admin'] } : { id: 'alice', scopes },
      },
    });
    const { run_id } = await (await served.post('/runs', ask('thinker'), { caller: 'alice' })).json();
    const path = `/runs/${run_id}/diagnostics`;
    const refused = await served.get(path, { caller: 'alice' });
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ data: { reason: 'scope_missing' } });
    expect(await (await served.get(path, { caller: 'root' })).json()).toEqual({ diagnostics: [call] });
  });
});
