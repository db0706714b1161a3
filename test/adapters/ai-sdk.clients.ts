import { setImmediate } from 'node:timers/promises';
import { jsonSchema, Output, stepCountIs, streamText, ToolLoopAgent, tool } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import type { Message } from 'rivulet';
import { aiSdkAgent } from 'rivulet/adapters/ai-sdk';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { Subject } from 'rxjs';
import { describe, expect, expectTypeOf, it, vi } from 'vitest';
import { lastText, said, serve, tokensOf, weatherApproval, weatherStep } from './chat-agent.ts';
import { crash } from './crash.ts';

type DoStream = MockLanguageModelV3['doStream'];
type Prompt = Parameters<DoStream>[0]['prompt'];
type Part = Awaited<ReturnType<DoStream>>['stream'] extends ReadableStream<infer P> ? P : never;

const usage = (input: number, output: number) => ({
  inputTokens: { total: input, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: output, text: undefined, reasoning: undefined },
});
const finish = (unified: 'stop' | 'tool-calls', output = 5): Part => ({
  type: 'finish',
  finishReason: { unified, raw: undefined },
  usage: usage(10, output),
});
const text = (...tokens: string[]): Part[] => [
  { type: 'text-start', id: 't' },
  ...tokens.map((delta) => ({ type: 'text-delta' as const, id: 't', delta })),
  { type: 'text-end', id: 't' },
];
const call = (city: string, toolCallId = `call-${city}`): Part => ({
  type: 'tool-call',
  toolCallId,
  toolName: 'weather',
  input: JSON.stringify({ city }),
});

/** Each part comes in a turn of its own, so that it is committed before the next one. */
const paced = (parts: readonly Part[]): ReadableStream<Part> => {
  const left = [...parts];
  return new ReadableStream<Part>({
    async pull(controller) {
      for (let turn = 0; turn < 10; turn += 1) await setImmediate();
      const part = left.shift();
      if (part === undefined) controller.close();
      else controller.enqueue(part);
    },
  });
};

const modelOf = (answer: (prompt: Prompt, signal: AbortSignal | undefined) => readonly Part[] | ReadableStream<Part>) =>
  new MockLanguageModelV3({
    doStream: async ({ prompt, abortSignal }) => {
      const parts = answer(prompt, abortSignal);
      return { stream: parts instanceof ReadableStream ? parts : paced(parts) };
    },
  });

/** The text that a model was cut off after, or undefined. */
function cutText(prompt: Prompt): string | undefined {
  const [before, last] = prompt.slice(-2);
  if (last?.role !== 'user' || before?.role !== 'assistant' || !JSON.stringify(last.content).includes('cut off'))
    return;
  return before.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

const words = (all: string): string[] => all.match(/\S+\s*/g) ?? [];
/** Says a text word by word; cut off, it says the rest. */
const say = (prompt: Prompt, all: string): Part[] => text(...words(all.slice(cutText(prompt)?.length ?? 0)));

const weather = (execute: (city: string) => unknown, needsApproval = false) =>
  tool({
    description: 'The weather of a city.',
    inputSchema: jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } }),
    needsApproval,
    execute: async ({ city }) => execute(city),
  });

/** Asks for the weather of the cities that it has no results of, and then tells it. */
const forecaster = (...cities: string[]) =>
  modelOf((prompt) => {
    const known = JSON.stringify(prompt.filter(({ role }) => role === 'tool'));
    const missing = cities.filter((city) => !known.includes(`"call-${city}"`));
    if (missing.length === 0) return [...say(prompt, '20 degrees.'), finish('stop')];
    const asked = missing.map((city) => call(city));
    return [...(missing.length === cities.length ? say(prompt, 'Looking. ') : []), ...asked, finish('tool-calls')];
  });

describe('an agent of the AI SDK', () => {
  it('streams the text token by token, and reports its usage', async () => {
    const model = modelOf(() => [...text('Hel', 'lo, ', 'Ada'), finish('stop')]);
    const { events, run } = await runAgent(serve(aiSdkAgent(new ToolLoopAgent({ model }))), 'Hi');
    expect(tokensOf(events)).toEqual(['Hel', 'lo, ', 'Ada']);
    expect(run.usage).toEqual({ tokens: 15, input_tokens: 10, output_tokens: 5 });
    expect(run.output).toHaveLength(1);
  });

  it('ends a run whose provider reports no numbers as usage', async () => {
    const model = modelOf(() => [...text('Hello.'), finish('stop', Number.NaN)]);
    for (const options of [{}, { durable: true }]) {
      const { run, text: said } = await runAgent(serve(aiSdkAgent(new ToolLoopAgent({ model })), options), 'Hi');
      expect([run.status, said, run.usage]).toEqual(['completed', 'Hello.', { tokens: 10, input_tokens: 10 }]);
    }
  });

  it('shows the reasoning of each model call once, where all have the same id', async () => {
    // As earlier versions of the SDK pass on those of a provider.
    const think = (text: string) => [
      { type: 'reasoning-start', id: '0' },
      { type: 'reasoning-delta', id: '0', text },
      { type: 'reasoning-end', id: '0' },
      { type: 'finish-step', usage: {} },
    ];
    async function* fullStream() {
      yield* [...think('I look.'), ...think('I know.'), { type: 'finish' }];
    }
    const { parts } = await runAgent(serve(aiSdkAgent(() => ({ fullStream: fullStream() }))), 'Rome?');
    expect(parts.map(({ metadata }) => metadata)).toMatchObject([{ message: 'I look.' }, { message: 'I know.' }]);
  });

  it('shows reasoning, sources and files as parts', async () => {
    const model = modelOf(() => [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'I think' },
      { type: 'reasoning-delta', id: 'r', delta: ' hard.' },
      { type: 'reasoning-end', id: 'r' },
      ...text('Done.'),
      { type: 'source', sourceType: 'url', id: 's', url: 'https://example.com/', title: 'Example' },
      { type: 'file', mediaType: 'image/png', data: 'AAAA' },
      finish('stop'),
    ]);
    const { parts } = await runAgent(serve(aiSdkAgent(new ToolLoopAgent({ model }))), 'Hi');
    expect(parts).toEqual([
      { content_type: 'text/plain', metadata: { kind: 'trajectory', message: 'I think hard.' } },
      { content_type: 'text/plain', content: 'Done.' },
      { content_type: 'text/plain', metadata: { kind: 'citation', url: 'https://example.com/', title: 'Example' } },
      { content_type: 'image/png', content_encoding: 'base64', content: 'AAAA' },
    ]);
  });

  it('shows a tool call with its result as a step; each model call is a message', async () => {
    const agent = new ToolLoopAgent({
      model: forecaster('Oslo'),
      tools: { weather: weather(() => ({ degrees: 20 })) },
    });
    const { run } = await runAgent(serve(aiSdkAgent(agent)), 'Oslo?');
    expect(said(run)).toEqual([['Looking. ', weatherStep('Oslo')], ['20 degrees.']]);
    // The call is there before its result.
    const calls = run.output[0]?.parts.slice(1).map(({ metadata }) => metadata);
    expect(calls).toMatchObject([
      { tool_call_id: 'call-Oslo', tool_input: { city: 'Oslo' } },
      { tool_call_id: 'call-Oslo', tool_output: { degrees: 20 } },
    ]);
    expect(run.usage).toEqual({ tokens: 30, input_tokens: 20, output_tokens: 10 });
  });

  it('shows the error of a tool, which the model gets as well', async () => {
    const tools = {
      weather: weather(() => {
        throw new Error('no such city');
      }),
    };
    const { run, parts } = await runAgent(serve(aiSdkAgent(new ToolLoopAgent({ model: forecaster('X'), tools }))), '?');
    expect(run.status).toBe('completed');
    expect(parts[2]?.metadata).toMatchObject({ tool_name: 'weather', tool_error: 'no such city' });
  });

  it('gives the model the session, with images and files', async () => {
    const model = modelOf(() => [...text('Nice.'), finish('stop')]);
    const history: Message[] = [
      { role: 'user', parts: [{ content: 'Hi' }] },
      { role: 'agent/chat', parts: [{ content: 'Hello.' }, { metadata: { kind: 'trajectory', message: 'Hm.' } }] },
    ];
    await runAgent(
      serve(aiSdkAgent(new ToolLoopAgent({ model, instructions: 'Be kind.' }))),
      [
        'Look: ',
        { content_type: 'image/png', content_encoding: 'base64', content: 'AAAA' },
        { content_type: 'text/csv', name: 'a.csv', content: '1,2' },
      ],
      { history },
    );
    expect(model.doStreamCalls[0]?.prompt).toMatchObject([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello.' }] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look: ' },
          { type: 'file', mediaType: 'image/png', data: 'AAAA' },
          { type: 'text', text: 'a.csv:\n1,2\n' },
        ],
      },
    ]);
  });

  it('fails the run with the error of the model, after the text so far', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {});
    const model = modelOf(() => [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'So f' },
      { type: 'error', error: new Error('The model is overloaded.') },
    ]);
    const { run, text: said } = await runAgent(serve(aiSdkAgent(new ToolLoopAgent({ model }))), 'Hi');
    log.mockRestore();
    expect(run.status).toBe('failed');
    expect(run.error).toMatchObject({ code: 'server_error', message: 'The model is overloaded.' });
    expect(said).toBe('So f');
  });

  it('aborts the model when the run is cancelled', async () => {
    const stop = new AbortController();
    let given: AbortSignal | undefined;
    const model = modelOf(
      (_, signal) =>
        new ReadableStream<Part>({
          start(controller) {
            given = signal;
            for (const part of text('Wait').slice(0, 2)) controller.enqueue(part);
            stop.abort();
          },
        }),
    );
    const { run } = await runAgent(serve(aiSdkAgent(new ToolLoopAgent({ model }))), 'Hi', { signal: stop.signal });
    expect(run.status).toBe('cancelled');
    await expect.poll(() => given?.aborted).toBe(true);
  });

  it('takes a function that calls streamText', async () => {
    const model = modelOf((prompt) => [...text(`${prompt.length}`), finish('stop')]);
    const run = aiSdkAgent((messages, { signal }) => streamText({ model, messages, abortSignal: signal }));
    expect((await runAgent(serve(run), 'Hi')).text).toBe('1');
  });
});

describe('the types of aiSdkAgent', () => {
  it('accept agents with any tools and output, and every stream of text', () => {
    const model = modelOf(() => []);
    const schema = jsonSchema<{ degrees: number }>({ type: 'object' });
    const tools = {
      weather: weather(() => 20),
      other: tool({ inputSchema: schema, execute: ({ degrees }) => degrees }),
    };
    expectTypeOf(aiSdkAgent).toBeCallableWith(new ToolLoopAgent({ model, tools }));
    expectTypeOf(aiSdkAgent).toBeCallableWith(new ToolLoopAgent({ model, output: Output.object({ schema }) }));
    expectTypeOf(aiSdkAgent).toBeCallableWith((messages) => streamText({ model, messages, tools }));
    expectTypeOf(aiSdkAgent).toBeCallableWith(async (messages, { signal, principal }) =>
      streamText({ model, messages, abortSignal: signal, system: `You talk with ${principal?.id}.` }),
    );
  });
});

describe('a tool that needs an approval', () => {
  const asking = (done: string[], ...cities: string[]) =>
    serve(
      aiSdkAgent(
        new ToolLoopAgent({
          model: forecaster(...cities),
          tools: { weather: weather((city) => ({ known: done.push(city) > 0 }), true) },
        }),
      ),
      { durable: true },
    );

  it('is a question, and runs when the reply is yes', async () => {
    const done: string[] = [];
    const { run, questions } = await runAgent(asking(done, 'Oslo'), 'Oslo?', { answers: ['true'] });
    expect(questions[0]).toMatchObject(weatherApproval);
    expect([run.status, done]).toEqual(['completed', ['Oslo']]);
    expect(run.output.at(-1)?.parts.at(-1)?.content).toBe('20 degrees.');
  });

  it('does not run when the reply is no, and the model goes on', async () => {
    const done: string[] = [];
    const { run, parts } = await runAgent(asking(done, 'Oslo'), 'Oslo?', { answers: ['false'] });
    expect([run.status, done]).toEqual(['completed', []]);
    expect(parts[1]?.metadata).toMatchObject({ tool_name: 'weather', tool_input: { city: 'Oslo' } });
    expect(parts[2]?.metadata).toMatchObject({ tool_name: 'weather', tool_output: { denied: true } });
  });

  it('tells the model why the reply is no', async () => {
    const prompts: string[] = [];
    const { doStream } = forecaster('Oslo');
    const model = new MockLanguageModelV3({
      doStream: (options) => {
        prompts.push(JSON.stringify(options.prompt));
        return doStream(options);
      },
    });
    const tools = { weather: weather(() => 20, true) };
    const no = { parts: [{ content: 'false' }], reason: 'Rain is secret.' };
    const { run } = await runAgent(serve(aiSdkAgent(new ToolLoopAgent({ model, tools }))), 'Oslo?', { answers: [no] });
    expect([run.status, prompts.at(-1)]).toEqual(['completed', expect.stringContaining('Rain is secret.')]);
  });

  it('is asked for once each, and survives a crash at any point', async () => {
    const done: string[] = [];
    const { run, cuts } = await cutEverywhere(asking(done, 'Oslo', 'Rome'), '?', {
      answers: ['true', 'false'],
      endOf: lastText,
    });
    expect(run.questions).toHaveLength(2);
    expect(run.output.map(({ parts }) => parts.length)).toEqual([3, 2, 1]);
    expect(cuts).toBeGreaterThan(3);
    expect(new Set(done)).toEqual(new Set(['Oslo']));
  });
});

/** A tool that a crash cuts off the first time; `reached` tells when it is executed. */
function cutOffOnce() {
  const reached = new Subject<void>();
  const done: string[] = [];
  const execute = (city: string) => {
    if (done.push(city) > 1) return { degrees: 20 };
    reached.next();
    return new Promise<never>(() => {});
  };
  return { reached, done, execute };
}

describe('a durable agent of the AI SDK', () => {
  it('ends the same after a crash at any point, and repeats no tool whose result is in the journal', async () => {
    const done: string[] = [];
    const lives: number[] = [];
    const agent = new ToolLoopAgent({
      model: forecaster('Oslo', 'Rome'),
      tools: { weather: weather((city) => ({ known: done.push(city) > 0 })) },
    });
    const run = aiSdkAgent(agent);
    const durable = serve(
      (input, context) => {
        lives.push(done.length);
        return run(input, context);
      },
      { durable: true },
    );
    // A model that was cut off between two calls makes the second one in another message.
    const { cuts } = await cutEverywhere(durable, '?', { endOf: lastText });
    const perLife = lives.map((begun, life) => done.slice(begun, lives[life + 1] ?? done.length));
    expect(cuts).toBeGreaterThan(3);
    expect(perLife[0]?.sort()).toEqual(['Oslo', 'Rome']);
    for (const life of perLife) expect(new Set(life).size).toBe(life.length);
    expect(perLife.at(-1)).toEqual([]);
  });

  it('executes a tool again that was cut off, and asks the model no question again', async () => {
    const { reached, done, execute } = cutOffOnce();
    const model = forecaster('Oslo');
    const agent = new ToolLoopAgent({ model, tools: { weather: weather(execute) } });
    const { run } = await crash(serve(aiSdkAgent(agent), { durable: true }), reached);
    expect(said(run)).toEqual([['Looking. ', weatherStep('Oslo', expect.anything())], ['20 degrees.']]);
    expect([done, model.doStreamCalls.length]).toEqual([['Oslo', 'Oslo'], 2]);
  });

  it('counts the answer of a model whose tools were cut off', async () => {
    const { reached, done, execute } = cutOffOnce();
    const late = async (city: string) => {
      // The model has ended meanwhile.
      for (let turn = 0; turn < 100; turn += 1) await setImmediate();
      return execute(city);
    };
    const agent = new ToolLoopAgent({ model: forecaster('Oslo'), tools: { weather: weather(late) } });
    const { run } = await crash(serve(aiSdkAgent(agent), { durable: true }), reached);
    expect([done.length, run.usage]).toEqual([2, { tokens: 30, input_tokens: 20, output_tokens: 10 }]);
  });

  it('tells people and the model that the outcome is unknown where the function of the agent has the tools', async () => {
    const { reached, done, execute } = cutOffOnce();
    const model = forecaster('Oslo');
    const tools = { weather: weather(execute) };
    const run = aiSdkAgent((messages) => streamText({ model, messages, tools, stopWhen: stepCountIs(3) }));
    const { run: ended } = await crash(serve(run, { durable: true }), reached);
    const unknown = { kind: 'trajectory', tool_error: expect.stringContaining('Whether it took effect is unknown.') };
    expect(said(ended)).toMatchObject([['Looking. ', unknown], ['20 degrees.']]);
    expect([done, model.doStreamCalls.length]).toEqual([['Oslo'], 2]);
    expect(JSON.stringify(model.doStreamCalls[1]?.prompt)).toContain('Whether it took effect is unknown.');
  });

  it('does not repeat an approved tool of a function: its outcome is unknown', async () => {
    const { reached, done, execute } = cutOffOnce();
    const model = forecaster('Oslo');
    const tools = { weather: weather(execute, true) };
    const run = aiSdkAgent((messages) => streamText({ model, messages, tools, stopWhen: stepCountIs(3) }));
    const { run: ended } = await crash(serve(run, { durable: true }), reached, ['true']);
    expect([ended.status, done, model.doStreamCalls.length]).toEqual(['completed', ['Oslo'], 2]);
    const unknown = { kind: 'trajectory', tool_error: expect.stringContaining('Whether it took effect is unknown.') };
    expect(said(ended)).toMatchObject([['Looking. ', unknown], ['20 degrees.']]);
    expect(JSON.stringify(model.doStreamCalls[1]?.prompt)).toContain('Whether it took effect is unknown.');
  });

  it('asks the model to go on after the text that the journal has', async () => {
    const model = modelOf((prompt) => [...say(prompt, 'one two three four'), finish('stop')]);
    const durable = serve(aiSdkAgent(new ToolLoopAgent({ model, stopWhen: stepCountIs(3) })), { durable: true });
    const { run } = await cutEverywhere(durable, 'Count');
    expect(run.output[0]?.parts[0]?.content).toBe('one two three four');
    const asked = model.doStreamCalls.map(({ prompt }) => cutText(prompt));
    expect(new Set(asked)).toEqual(new Set([undefined, 'one ', 'one two ', 'one two three ', 'one two three four']));
  });
});
