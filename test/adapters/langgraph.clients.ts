import { setImmediate } from 'node:timers/promises';
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import {
  AIMessage,
  AIMessageChunk,
  type AIMessageChunkFields,
  type BaseMessage,
  type MessageContent,
  ToolMessage,
} from '@langchain/core/messages';
import { ChatGenerationChunk } from '@langchain/core/outputs';
import { tool } from '@langchain/core/tools';
import { Annotation, END, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { createReactAgent, ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import type { AgentFunction, AgentOutput, Message } from 'rivulet';
import { type LangGraphOptions, langGraphAgent } from 'rivulet/adapters/langgraph';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { firstValueFrom, from, type Observable, ReplaySubject, Subject, tap } from 'rxjs';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { newId } from '../../src/engine/ids.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { begin, follow, startEngine } from '../../src/testing/engine.ts';
import { said, serve, tokensOf, weatherStep } from './chat-agent.ts';
import { crash } from './crash.ts';

type Chunk = AIMessageChunkFields & { readonly content: MessageContent };
type Script = (messages: BaseMessage[], signal: AbortSignal | undefined) => Iterable<Chunk> | AsyncIterable<Chunk>;

/** A chat model that streams what its script has. */
class ScriptedModel extends BaseChatModel {
  readonly script: Script;
  readonly asked: BaseMessage[][] = [];

  constructor(script: Script) {
    super({});
    this.script = script;
  }

  override _llmType(): string {
    return 'scripted';
  }

  override bindTools(): this {
    return this;
  }

  override _generate(): never {
    throw new Error('this model streams');
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    callbacks?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    this.asked.push(messages);
    checkCalls(messages);
    for await (const fields of this.script(messages, options.signal)) {
      // Each chunk in turns of its own, so that it is committed before the next one.
      for (let turn = 0; turn < 10; turn += 1) await setImmediate();
      const message = new AIMessageChunk(fields);
      const chunk = new ChatGenerationChunk({ message, text: message.text });
      yield chunk;
      await callbacks?.handleLLMNewToken(message.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

/** As servers of models do: a result needs its call before it, and a call its result. */
function checkCalls(messages: readonly BaseMessage[]): void {
  const open = new Set<string | undefined>();
  for (const message of messages) {
    if (ToolMessage.isInstance(message)) {
      if (!open.delete(message.tool_call_id)) throw new Error(`400 no call ${message.tool_call_id}`);
    } else if (open.size > 0) throw new Error(`400 no result of ${[...open].join()}`);
    if (AIMessage.isInstance(message)) for (const { id } of message.tool_calls ?? []) open.add(id);
  }
  if (open.size > 0) throw new Error(`400 no result of ${[...open].join()}`);
}

const words = (all: string): Chunk[] => (all.match(/\S+\s*/g) ?? []).map((content) => ({ content }));
const usage: Chunk = { content: '', usage_metadata: { input_tokens: 10, output_tokens: 5, total_tokens: 15 } };
const call = (city: string): Chunk => ({
  content: '',
  tool_call_chunks: [
    { type: 'tool_call_chunk', id: `call-${city}`, index: 0, name: 'weather', args: JSON.stringify({ city }) },
  ],
});
const hasResult = (messages: BaseMessage[]): boolean => messages.some(({ type }) => type === 'tool');

const durable = (run: AgentFunction) => serve(run, { durable: true });

/** A graph of one node, which asks the model. */
const talker = (script: Script) => {
  const model = new ScriptedModel(script);
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addEdge(START, 'model')
    .addEdge('model', END);
  return { model, graph };
};

/** A graph with a model and a tool, which looks up the weather of Oslo. */
const forecaster = (execute: (city: string) => unknown, script: Script = forecast) => {
  const model = new ScriptedModel(script);
  const weather = tool(async ({ city }: { city: string }) => JSON.stringify(await execute(city)), {
    name: 'weather',
    description: 'The weather of a city.',
    schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  });
  const saver = new MemorySaver();
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addNode('tools', new ToolNode([weather]))
    .addEdge(START, 'model')
    .addConditionalEdges('model', toolsCondition)
    .addEdge('tools', 'model')
    .compile({ checkpointer: saver });
  return { model, graph };
};
const forecast: Script = (messages) =>
  hasResult(messages) ? [...words('It is 20 degrees.'), usage] : [...words('Let me look. '), call('Oslo'), usage];

const user = (content: string) => ({ role: 'user', parts: [{ content_type: 'text/plain', content }] });
const never = new Promise<never>(() => {});

describe('an agent of LangGraph', () => {
  it('streams the text token by token, and reports its usage', async () => {
    const { graph } = talker(() => [...words('Hello dear Ada'), usage]);
    const { events, run } = await runAgent(serve(langGraphAgent(graph.compile())), 'Hi');
    expect(tokensOf(events)).toEqual(['Hello ', 'dear ', 'Ada']);
    expect(run.usage).toEqual({ tokens: 15, input_tokens: 10, output_tokens: 5 });
    expect(run.output).toHaveLength(1);
  });

  it('shows reasoning, citations and files as parts', async () => {
    const block = (...content: object[]): Chunk => ({ content: content as MessageContent & object[] });
    const { graph } = talker(() => [
      block({ type: 'reasoning', reasoning: 'I think', index: 0 }),
      block({ type: 'reasoning', reasoning: ' hard.', index: 0 }),
      block({
        type: 'text',
        text: 'Done.',
        index: 1,
        annotations: [{ type: 'citation', url: 'https://example.com/', title: 'Example', startIndex: 0, endIndex: 5 }],
      }),
      block({ type: 'image', mimeType: 'image/png', data: 'AAAA', index: 2 }),
    ]);
    const { parts } = await runAgent(serve(langGraphAgent(graph.compile())), 'Hi');
    expect(parts).toEqual([
      { content_type: 'text/plain', metadata: { kind: 'trajectory', message: 'I think hard.' } },
      { content_type: 'text/plain', content: 'Done.' },
      {
        content_type: 'text/plain',
        metadata: {
          kind: 'citation',
          url: 'https://example.com/',
          title: 'Example',
          start_index: 0,
          end_index: 5,
        },
      },
      { content_type: 'image/png', content_encoding: 'base64', content: 'AAAA' },
    ]);
  });

  it('shows a tool call with its result as a step; each answer of the model is a message', async () => {
    const { graph } = forecaster(() => ({ degrees: 20 }));
    const { run } = await runAgent(serve(langGraphAgent(graph)), 'Oslo?');
    expect(said(run)).toEqual([['Let me look. ', weatherStep('Oslo')], ['It is 20 degrees.']]);
    // The call is there before its result.
    expect(run.output[0]?.parts[1]?.metadata).toMatchObject({
      tool_call_id: 'call-Oslo',
      tool_input: { city: 'Oslo' },
    });
    expect(run.usage).toEqual({ tokens: 30, input_tokens: 20, output_tokens: 10 });
  });

  it('gives a graph without a checkpointer the session, with images', async () => {
    const { graph, model } = talker(() => words('Nice.'));
    const history: Message[] = [
      { role: 'user', parts: [{ content: 'Hi' }] },
      { role: 'agent/chat', parts: [{ content: 'Hello.' }] },
    ];
    const picture = { content_type: 'image/png', content_encoding: 'base64' as const, content: 'AAAA' };
    await runAgent(serve(langGraphAgent(graph.compile())), ['Look: ', picture], { history });
    expect(model.asked[0]?.map(({ type, content }) => [type, content])).toEqual([
      ['human', [{ type: 'text', text: 'Hi' }]],
      ['ai', [{ type: 'text', text: 'Hello.' }]],
      [
        'human',
        [
          { type: 'text', text: 'Look: ' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
        ],
      ],
    ]);
  });

  it('gives a graph with a checkpointer the new messages; the session is its thread', async () => {
    const { graph, model } = talker((messages) => words(`You said ${messages.length} things.`));
    const agent = serve(langGraphAgent(graph.compile({ checkpointer: new MemorySaver() })));
    const engine = await startEngine([agent], new MemoryStore());
    const session = newId();
    for (const text of ['one', 'two']) await follow(engine, await begin(engine, agent, text, session));
    await engine.stop();
    expect(model.asked.map((messages) => messages.map(({ text }) => text))).toEqual([
      ['one'],
      ['one', 'You said 1 things.', 'two'],
    ]);
  });

  it.each([false, true])(
    'forgets the turns that are answered anew, also where it is durable: %s',
    async (isDurable) => {
      const { graph, model } = talker((messages) => words(`Answer ${model.asked.length} to ${messages.length}.`));
      const run = langGraphAgent(graph.compile({ checkpointer: new MemorySaver() }));
      const agent = serve(run, { durable: isDurable });
      const engine = await startEngine([agent], new MemoryStore());
      const session = newId();
      const runs: string[] = [];
      for (const text of ['one', 'two', 'three']) {
        const run_id = await begin(engine, agent, text, session);
        runs.push(run_id);
        await follow(engine, run_id);
      }
      for (const run_id of runs.slice(1)) await engine.remove(run_id);
      const anew = await follow(engine, await begin(engine, agent, 'two', session));
      const next = await follow(engine, await begin(engine, agent, 'four', session));
      await engine.stop();
      expect([anew.run.status, next.run.status]).toEqual(['completed', 'completed']);
      expect(model.asked.slice(3).map((messages) => messages.map(({ text }) => text))).toEqual([
        ['one', 'Answer 1 to 1.', 'two'],
        ['one', 'Answer 1 to 1.', 'two', 'Answer 4 to 3.', 'four'],
      ]);
    },
  );

  it('goes on in a thread whose run was cancelled while its tool ran', async () => {
    const begun = new Subject<void>();
    let calls = 0;
    const { model, graph } = forecaster(() => {
      calls += 1;
      if (calls > 1) return { degrees: 20 };
      begun.next();
      return never;
    });
    const agent = serve(langGraphAgent(graph));
    const engine = await startEngine([agent], new MemoryStore());
    const session_id = newId();
    const running = firstValueFrom(begun);
    const first = await engine.create({ agent_name: 'chat', input: [user('Oslo?')], session_id });
    await running;
    await engine.cancel(first.run_id);
    const second = await follow(
      engine,
      (await engine.create({ agent_name: 'chat', input: [user('And now?')], session_id })).run_id,
    );
    await engine.stop();
    expect([second.run.error, second.run.status]).toEqual([undefined, 'completed']);
    expect(model.asked.at(1)?.map(({ type }) => type)).toEqual(['human', 'ai', 'tool', 'human']);
    expect(model.asked.at(1)?.[2]?.text).toContain('Whether it took effect is unknown.');
  });

  it('streams what a graph inside the graph does, and answers its interrupts', async () => {
    const model = new ScriptedModel(forecast);
    const ask = tool(() => `${interrupt('Shall I look?')}, 20 degrees`, {
      name: 'weather',
      description: 'The weather of a city.',
      schema: { type: 'object', properties: { city: { type: 'string' } } },
    });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('expert', createReactAgent({ llm: model, tools: [ask] }))
      .addEdge(START, 'expert')
      .addEdge('expert', END)
      .compile({ checkpointer: new MemorySaver() });
    const { run, questions } = await runAgent(serve(langGraphAgent(graph)), 'Oslo?', { answers: ['yes'] });
    expect(questions).toHaveLength(1);
    expect(said(run)).toEqual([
      ['Let me look. ', weatherStep('Oslo', { value: 'yes, 20 degrees' })],
      ['It is 20 degrees.'],
    ]);
    expect(run.usage).toEqual({ tokens: 30, input_tokens: 20, output_tokens: 10 });
  });

  it('shows the call of a tool before it runs, also of a graph that a node calls', async () => {
    const begun = new ReplaySubject<unknown>();
    const slow = tool(async () => `20 degrees, ${await firstValueFrom(begun)}`, {
      name: 'weather',
      description: 'The weather of a city.',
      schema: { type: 'object', properties: { city: { type: 'string' } } },
    });
    const expert = createReactAgent({ llm: new ScriptedModel(forecast), tools: [slow] });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('expert', async ({ messages }) => ({ messages: (await expert.invoke({ messages })).messages.slice(-1) }))
      .addEdge(START, 'expert')
      .compile({ checkpointer: new MemorySaver() });
    const inner = langGraphAgent(graph);
    const shown = serve((input, context) =>
      from(inner(input, context) as Observable<AgentOutput>).pipe(
        tap((part) => {
          if (JSON.stringify(part).includes('"tool_input":{"city":"Oslo"}')) begun.next('shown');
        }),
      ),
    );
    const { run } = await runAgent(shown, 'Oslo?');
    expect(said(run).flat()).toContainEqual(weatherStep('Oslo', { value: '20 degrees, shown' }));
  });

  it('fails the run with the error of the model, after the text so far', async () => {
    const { graph } = talker(function* () {
      yield { content: 'So f' };
      throw new Error('The model is overloaded.');
    });
    const { run, text } = await runAgent(serve(langGraphAgent(graph.compile())), 'Hi');
    expect([run.status, text]).toEqual(['failed', 'So f']);
    expect(run.error).toMatchObject({ code: 'server_error', message: 'The model is overloaded.' });
  });

  it('aborts the model when the run is cancelled', async () => {
    const stop = new AbortController();
    let given: AbortSignal | undefined;
    const { graph } = talker(async function* (_, signal) {
      given = signal;
      yield { content: 'Wait' };
      stop.abort();
      await never;
    });
    const { run } = await runAgent(serve(langGraphAgent(graph.compile())), 'Hi', { signal: stop.signal });
    expect(run.status).toBe('cancelled');
    await expect.poll(() => given?.aborted).toBe(true);
  });

  it('takes another input and thread', async () => {
    const { graph, model } = talker(() => words('Yes.'));
    const options: LangGraphOptions = {
      input: (messages) => ({ messages: [{ role: 'system', content: 'Be kind.' }, ...messages] }),
      thread: ({ session }) => `thread of ${session.id}`,
    };
    await runAgent(serve(langGraphAgent(graph.compile({ checkpointer: new MemorySaver() }), options)), 'Hi');
    expect(model.asked[0]?.map(({ type }) => type)).toEqual(['system', 'human']);
  });
});

describe('the types of langGraphAgent', () => {
  it('accept graphs with any state', () => {
    const State = Annotation.Root({ ...MessagesAnnotation.spec, topic: Annotation<string>() });
    const graph = new StateGraph(State).addNode('node', () => ({ topic: 'tea' })).addEdge(START, 'node');
    expectTypeOf(langGraphAgent).toBeCallableWith(graph.compile());
    expectTypeOf(langGraphAgent).toBeCallableWith(graph.compile({ checkpointer: new MemorySaver() }), {
      input: (messages) => ({ messages, topic: 'tea' }),
      configurable: ({ principal }) => ({ user: principal?.id }),
    });
    const react = createReactAgent({ llm: new ScriptedModel(() => []), tools: [] });
    expectTypeOf(langGraphAgent).toBeCallableWith(react);
  });
});

describe('an interrupt', () => {
  const approver = (done: string[] = []) => {
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('ask', async () => {
        const first = interrupt({ question: 'Shall I pay?', amount: 40 });
        const second = interrupt('Which account?');
        done.push(`${first} ${second}`);
        return { messages: [{ role: 'assistant', content: first === true ? `Paid ${second}.` : 'Nothing was paid.' }] };
      })
      .addEdge(START, 'ask')
      .addEdge('ask', END)
      .compile({ checkpointer: new MemorySaver() });
    return langGraphAgent(graph);
  };

  it.each([
    ['true', 'Paid Ada.'],
    ['no', 'Nothing was paid.'],
  ])('is a question, and the reply %s resumes the graph', async (reply, expected) => {
    const { run, questions, text } = await runAgent(serve(approver()), 'Pay', { answers: [reply, 'Ada'] });
    expect(questions.map(({ message }) => message.parts.map(({ content }) => content))).toEqual([
      ['Shall I pay?', '{"question":"Shall I pay?","amount":40}'],
      ['Which account?'],
    ]);
    expect([run.status, text]).toEqual(['completed', expected]);
  });

  it.each(['in one life', 'in a life for each question'])(
    'is asked once, where a node beside it has another one, %s',
    async (lives) => {
      const say = (content: string) => ({ messages: [{ role: 'assistant', content }] });
      const graph = new StateGraph(MessagesAnnotation)
        .addNode('slow', () => say(`${interrupt('First?')} ${interrupt('Second?')}`))
        .addNode('quick', () => say(`${interrupt('Only?')}`))
        .addEdge(START, 'slow')
        .addEdge(START, 'quick')
        .compile({ checkpointer: new MemorySaver() });
      const store = new MemoryStore();
      const agent = durable(langGraphAgent(graph));
      let engine = await startEngine([agent], store);
      const run_id = await begin(engine, agent, 'Go', newId());
      const replies: string[] = [];
      let ended = await follow(engine, run_id);
      while (ended.run.status === 'awaiting') {
        replies.push(`reply to ${ended.questions.at(-1)?.message.parts[0]?.content}`);
        if (lives !== 'in one life') {
          await engine.stop();
          engine = await startEngine([agent], store);
        }
        ended = await follow(engine, run_id, replies);
      }
      await engine.stop();
      expect(replies.toSorted()).toEqual(['reply to First?', 'reply to Only?', 'reply to Second?']);
      expect(said(ended.run).flat().toSorted()).toEqual(['reply to First? reply to Second?', 'reply to Only?']);
    },
  );

  it('is answered after a crash, once', async () => {
    const done: string[] = [];
    const { run, questions } = await crash(durable(approver(done)), undefined, ['true', 'Ada']);
    expect([run.status, questions.length, done]).toEqual(['completed', 2, ['true Ada']]);
  });
});

describe('a durable agent of LangGraph', () => {
  const whole = [['Let me look. ', weatherStep('Oslo')], ['It is 20 degrees.']];

  it.each(['Let ', 'look. ', 'It ', 'degrees.'])('continues after a crash at the token "%s"', async (token) => {
    const reached = new Subject<void>();
    let crashed = false;
    const done: string[] = [];
    const { graph } = forecaster(
      (city) => {
        done.push(city);
        return { degrees: 20 };
      },
      async function* (messages, signal) {
        for await (const chunk of forecast(messages, signal)) {
          yield chunk;
          if (crashed || chunk.content !== token) continue;
          crashed = true;
          for (let turn = 0; turn < 50; turn += 1) await setImmediate();
          reached.next();
          await never;
        }
      },
    );
    const { run } = await crash(durable(langGraphAgent(graph)), reached);
    expect(run.status).toBe('completed');
    expect(said(run)).toEqual(whole);
    expect(done).toEqual(['Oslo']);
  });

  it('executes a tool again that was cut off, and asks the model no question again', async () => {
    const reached = new Subject<void>();
    const done: string[] = [];
    const { graph, model } = forecaster((city) => {
      if (done.push(city) > 1) return { degrees: 20 };
      reached.next();
      return never;
    });
    const { run } = await crash(durable(langGraphAgent(graph)), reached);
    expect(said(run)).toEqual(whole);
    expect([done, model.asked.length]).toEqual([['Oslo', 'Oslo'], 2]);
  });

  it('makes a message of an answer that differs from the one that was cut off', async () => {
    const reached = new Subject<void>();
    let life = 0;
    const { graph } = talker(async function* () {
      life += 1;
      yield* words(life === 1 ? 'The sky is' : 'The sea is blue.');
      if (life > 1) return;
      for (let turn = 0; turn < 50; turn += 1) await setImmediate();
      reached.next();
      await never;
    });
    const { run } = await crash(durable(langGraphAgent(graph.compile({ checkpointer: new MemorySaver() }))), reached);
    expect(said(run)).toEqual([['The sky is'], ['The sea is blue.']]);
    expect(run.output.map(({ finish_reason }) => finish_reason)).toEqual(['interrupted', undefined]);
  });

  it('emits what the checkpoints have and the journal has not', async () => {
    const done: string[] = [];
    const { graph, model } = forecaster((city) => {
      done.push(city);
      return { degrees: 20 };
    });
    // Each life after the first finds the thread at its end.
    const { run, cuts } = await cutEverywhere(serve(langGraphAgent(graph), { durable: true }), 'Oslo?', {
      endOf: (end) => [said(end), end.usage],
    });
    expect(said(run)).toEqual(whole);
    expect(cuts).toBeGreaterThan(3);
    expect([done, model.asked.length]).toEqual([['Oslo'], 2]);
  });

  it('fails without a checkpointer, because its tools would run again', async () => {
    const reached = new Subject<void>();
    const { graph } = talker(async function* () {
      yield { content: 'Wait' };
      for (let turn = 0; turn < 50; turn += 1) await setImmediate();
      reached.next();
      await never;
    });
    const { run } = await crash(durable(langGraphAgent(graph.compile())), reached);
    expect(run.error).toMatchObject({ data: { code: 'checkpointer_missing' } });
  });
});
