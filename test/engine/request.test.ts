import { concatMap, filter, lastValueFrom, map, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type AgentRequest, createRuntime } from '../../src/index.ts';
import { cutEverywhere, runAgent } from '../../src/testing/testing.ts';
import { agent } from '../support/agents.ts';

const request: AgentRequest = {
  protocol: 'openai',
  conversation: 'thread 7',
  instructions: 'Be brief.',
  tools: [{ name: 'browse', parameters: { type: 'object' } }],
  state: { open: true },
};

const seen = agent('seen', (_, context) => of(JSON.stringify(context.request)));

describe('the request of a run', () => {
  it('is what the protocol says beside the messages', async () => {
    expect(JSON.parse((await runAgent(seen, 'hi', { request })).text)).toEqual(request);
  });

  it('names the protocol alone for a run of the own API or of this process', async () => {
    const runtime = await createRuntime({ agents: [seen], store: 'memory:' });
    const run = await runtime.sync('seen', 'hi');
    expect(run.output[0]?.parts[0]?.content).toBe('{"protocol":"acp"}');
    await runtime.close();
  });

  it('is the same in every life of a durable run, and in agents that it calls', async () => {
    const caller = agent('caller', (_, context) => context.call('seen', 'hi'));
    const durable = { ...caller, options: { durable: true } };
    const { run } = await cutEverywhere(durable, 'hi', { request, calls: { seen } });
    expect(JSON.parse(run.output[0]?.parts[0]?.content ?? '')).toEqual(request);
  });
});

describe('a question that asks for a tool of the client', () => {
  it('names the tool and its input', async () => {
    const asker = agent('asker', (_, context) =>
      context
        .await('Open the page.', { tool: { name: 'browse', input: { url: 'https://example.com/' } } })
        .pipe(map(({ message }) => message)),
    );
    const { run } = await runAgent(asker, 'hi');
    expect(run.await_request?.tool).toEqual({ name: 'browse', input: { url: 'https://example.com/' } });
  });

  it('fails the run where the tool has no name, with an error that names the field', async () => {
    const asker = agent('asker', (_, context) =>
      context.await('Open.', { tool: { name: '' } }).pipe(map(({ message }) => message)),
    );
    const { run } = await runAgent(asker, 'hi');
    expect(run.error?.message).toContain('await.tool.name');
  });
});

describe('the usage of a run', () => {
  const uses = (...used: { tokens?: number; input_tokens?: number; output_tokens?: number }[]) =>
    agent('uses', (_, context) => {
      for (const one of used) context.usage(one);
      return of('done');
    });

  it('adds up tokens, of prompts and of answers where they are told', async () => {
    const { run } = await runAgent(uses({ input_tokens: 10, output_tokens: 2 }, { tokens: 5, output_tokens: 1 }), 'hi');
    expect(run.usage).toEqual({ tokens: 17, input_tokens: 10, output_tokens: 3 });
  });

  it('is that of a cancelled run as well', async () => {
    const spends = agent('spends', async function* (_, context) {
      context.usage({ tokens: 7 });
      yield 'spent';
      await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
    });
    const runtime = await createRuntime({ agents: [spends], store: 'memory:' });
    const { run_id } = await runtime.start('spends', 'hi');
    const cancelling = runtime.watch(run_id).pipe(
      filter(({ type }) => type === 'message.part'),
      concatMap(() => runtime.cancel(run_id)),
    );
    await lastValueFrom(cancelling);
    expect(await runtime.get(run_id)).toMatchObject({ status: 'cancelled', usage: { tokens: 7 } });
    await runtime.close();
  });

  it('refuses a count that is none, by its name', async () => {
    const { run } = await runAgent(uses({ input_tokens: -1 }), 'hi');
    expect(run.error?.message).toContain('input_tokens');
  });
});
