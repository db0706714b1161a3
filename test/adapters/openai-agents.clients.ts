import { setImmediate } from 'node:timers/promises';
import {
  Agent,
  type AgentInputItem,
  handoff,
  type Model,
  type ModelRequest,
  Runner,
  type StreamEvent,
  tool,
} from '@openai/agents';
import type { AgentFunction, Message } from 'rivulet';
import { openAiAgent } from 'rivulet/adapters/openai-agents';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { Subject } from 'rxjs';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { lastText, said, serve, tokensOf, weatherApproval, weatherStep } from './chat-agent.ts';
import { crash } from './crash.ts';

type ResponseItem = Extract<StreamEvent, { type: 'response_done' }>['response']['output'][number];
type Script = (input: AgentInputItem[], request: ModelRequest) => Iterable<StreamEvent> | AsyncIterable<StreamEvent>;

/** A model that streams what its script has. */
class ScriptedModel implements Model {
  readonly script: Script;
  readonly asked: AgentInputItem[][] = [];

  constructor(script: Script) {
    this.script = script;
  }

  getResponse(): never {
    throw new Error('this model streams');
  }

  async *getStreamedResponse(request: ModelRequest): AsyncIterable<StreamEvent> {
    const input = typeof request.input === 'string' ? [] : [...request.input];
    this.asked.push(input);
    checkCalls(input);
    for await (const event of this.script(input, request)) {
      // Each event in turns of its own, so that it is committed before the next one.
      for (let turn = 0; turn < 10; turn += 1) await setImmediate();
      yield event;
    }
  }
}

/** As OpenAI's server does: a result needs its call before it, and a call its result. */
function checkCalls(input: readonly AgentInputItem[]): void {
  const open = new Set<string>();
  for (const item of input) {
    if (item.type === 'function_call') open.add(item.callId);
    if (item.type === 'function_call_result' && !open.delete(item.callId))
      throw new Error(`400 No tool call found for function call output with call_id ${item.callId}.`);
  }
  if (open.size > 0) throw new Error(`400 No tool output found for function call ${[...open].join()}.`);
}

const done = (...output: ResponseItem[]): StreamEvent => ({
  type: 'response_done',
  response: { id: 'r', usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 }, output },
});
const message = (text: string, annotations?: object[]): ResponseItem => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, ...(annotations && { providerData: { annotations } }) }],
});
const call = (city: string): ResponseItem => ({
  type: 'function_call',
  callId: `call-${city}`,
  name: 'weather',
  status: 'completed',
  arguments: JSON.stringify({ city }),
});
const deltas = (text: string): StreamEvent[] =>
  (text.match(/\S+\s*/g) ?? []).map((delta) => ({ type: 'output_text_delta', delta }));

/** The text that a model was cut off after. */
function cutText(input: readonly AgentInputItem[]): string {
  const [before, last] = input.slice(-2);
  if (!JSON.stringify(last ?? '').includes('cut off') || before === undefined) return '';
  if (!('role' in before) || before.role !== 'assistant') return '';
  return before.content.map((part) => (part.type === 'output_text' ? part.text : '')).join('');
}
/** Streams a text; cut off, it streams the rest. */
function say(input: readonly AgentInputItem[], text: string, ...items: ResponseItem[]): StreamEvent[] {
  const before = cutText(input);
  const rest = text.slice(text.startsWith(before) ? before.length : 0);
  return [...deltas(rest), done(message(rest), ...items)];
}

const hasResult = (input: readonly AgentInputItem[]): boolean =>
  input.some(({ type }) => type === 'function_call_result');
/** Asks for the weather of the cities, and then tells it. */
const forecast =
  (...cities: string[]): Script =>
  (input) =>
    hasResult(input) ? say(input, '20 degrees.') : say(input, 'Looking. ', ...cities.map(call));

const weather = (execute: (city: string) => unknown, needsApproval: boolean | (() => Promise<boolean>) = false) =>
  tool({
    name: 'weather',
    description: 'The weather of a city.',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    },
    strict: true,
    needsApproval,
    execute: async (input) => execute((input as { city: string }).city),
  });

const talker = (script: Script) => {
  const model = new ScriptedModel(script);
  return { model, agent: new Agent({ name: 'Talker', instructions: 'Be kind.', model }) };
};
const forecaster = (
  cities: string[],
  execute: (city: string) => unknown,
  needsApproval?: boolean | (() => Promise<boolean>),
) => {
  const model = new ScriptedModel(forecast(...cities));
  return { model, agent: new Agent({ name: 'Forecaster', model, tools: [weather(execute, needsApproval)] }) };
};

describe('an agent of the OpenAI Agents SDK', () => {
  it('streams the text token by token, and reports its usage', async () => {
    const { agent } = talker((input) => say(input, 'Hello dear Ada'));
    const { events, run } = await runAgent(serve(openAiAgent(agent)), 'Hi');
    expect(tokensOf(events)).toEqual(['Hello ', 'dear ', 'Ada']);
    expect(run.usage).toEqual({ tokens: 15, input_tokens: 10, output_tokens: 5 });
    expect(run.output).toHaveLength(1);
  });

  it('shows the text of a model that does not stream it', async () => {
    const { agent } = talker(() => [done(message('At once.'))]);
    expect((await runAgent(serve(openAiAgent(agent)), 'Hi')).text).toBe('At once.');
  });

  it('has each text of a response with several messages once, and the citations in their places', async () => {
    const source = (start_index: number, end_index: number) => [
      { type: 'url_citation', url: 'https://example.com/', start_index, end_index },
    ];
    for (const streamed of [['One. ', 'Two.'], []]) {
      const { agent } = talker(() => [
        ...streamed.map((delta) => ({ type: 'output_text_delta' as const, delta })),
        done(message('One. ', source(0, 3)), message('Two.', source(0, 3))),
      ]);
      const { parts, text } = await runAgent(serve(openAiAgent(agent)), 'Hi');
      expect(text).toBe('One. Two.');
      const cited = parts.flatMap(({ metadata }) => (metadata?.kind === 'citation' ? [metadata] : []));
      expect(cited.map(({ start_index, end_index }) => text.slice(start_index, end_index))).toEqual(['One', 'Two']);
    }
  });

  it('shows reasoning, citations and images as parts', async () => {
    const source = {
      type: 'url_citation',
      url: 'https://example.com/',
      title: 'Example',
      start_index: 0,
      end_index: 5,
    };
    const { agent } = talker(() => [
      done(
        { type: 'reasoning', content: [{ type: 'input_text', text: 'I think hard.' }] },
        { type: 'hosted_tool_call', name: 'image_generation_call', status: 'completed', output: 'AAAA' },
        message('Done.', [source]),
      ),
    ]);
    const { parts } = await runAgent(serve(openAiAgent(agent)), 'Hi');
    expect(parts).toEqual([
      { content_type: 'text/plain', metadata: { kind: 'trajectory', message: 'I think hard.' } },
      { content_type: 'image/png', content_encoding: 'base64', content: 'AAAA' },
      { content_type: 'text/plain', content: 'Done.' },
      {
        content_type: 'text/plain',
        metadata: { kind: 'citation', url: 'https://example.com/', title: 'Example', start_index: 0, end_index: 5 },
      },
    ]);
  });

  it('shows a tool call with its result as a step; each answer of the model is a message', async () => {
    const { agent } = forecaster(['Oslo'], () => ({ degrees: 20 }));
    const { run } = await runAgent(serve(openAiAgent(agent)), 'Oslo?');
    expect(said(run)).toEqual([['Looking. ', weatherStep('Oslo')], ['20 degrees.']]);
    expect(run.usage).toEqual({ tokens: 30, input_tokens: 20, output_tokens: 10 });
  });

  it('gives the model the session, with images and files', async () => {
    const { agent, model } = talker((input) => say(input, 'Nice.'));
    const history: Message[] = [
      { role: 'user', parts: [{ content: 'Hi' }] },
      { role: 'agent/chat', parts: [{ content: 'Hello.' }, { metadata: { kind: 'trajectory', message: 'Hm.' } }] },
    ];
    const image = { content_type: 'image/png', content_encoding: 'base64' as const, content: 'AAAA' };
    const file = { content_type: 'application/pdf', content_url: 'https://example.com/a.pdf', name: 'a.pdf' };
    await runAgent(serve(openAiAgent(agent)), ['Look: ', image, file], { history });
    expect(model.asked[0]).toEqual([
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
      expect.objectContaining({ role: 'assistant', content: [{ type: 'output_text', text: 'Hello.' }] }),
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'Look: ' },
          { type: 'input_image', image: 'data:image/png;base64,AAAA' },
          { type: 'input_file', file: { url: 'https://example.com/a.pdf' }, filename: 'a.pdf' },
        ],
      },
    ]);
  });

  it('shows a handoff as a step', async () => {
    const { agent: spanish } = talker((input) => say(input, 'Hola.'));
    const triage = new Agent({
      name: 'Triage',
      handoffs: [handoff(spanish)],
      model: new ScriptedModel(() => [
        done({ type: 'function_call', callId: 'h', name: 'transfer_to_Talker', arguments: '{}', status: 'completed' }),
      ]),
    });
    const { run } = await runAgent(serve(openAiAgent(triage)), 'Hi');
    expect(said(run)).toEqual([[expect.objectContaining({ tool_name: 'transfer_to_Talker' })], ['Hola.']]);
  });

  it('fails the run with the error of the model, after the text so far', async () => {
    const { agent } = talker(function* () {
      yield* deltas('So f');
      throw new Error('The model is overloaded.');
    });
    const { run, text } = await runAgent(serve(openAiAgent(agent)), 'Hi');
    expect([run.status, text]).toEqual(['failed', 'So f']);
    expect(run.error).toMatchObject({ code: 'server_error', message: 'The model is overloaded.' });
  });

  it('aborts the model when the run is cancelled', async () => {
    const stop = new AbortController();
    let given: AbortSignal | undefined;
    const { agent } = talker(async function* (_, { signal }) {
      given = signal;
      yield* deltas('Wait');
      stop.abort();
      await new Promise<never>(() => {});
    });
    const { run } = await runAgent(serve(openAiAgent(agent)), 'Hi', { signal: stop.signal });
    expect(run.status).toBe('cancelled');
    await expect.poll(() => given?.aborted).toBe(true);
  });

  it('takes a runner and options of the SDK', async () => {
    const { agent } = forecaster(['Oslo'], () => 20);
    const runner = new Runner({ tracingDisabled: true });
    const run = openAiAgent(agent, { runner, options: () => ({ maxTurns: 1 }) });
    expect((await runAgent(serve(run), '?')).run.error?.message).toMatch(/max turns/i);
  });
});

describe('the types of openAiAgent', () => {
  it('accept agents with any context, output and handoffs', () => {
    interface User {
      readonly name: string;
    }
    const typed = new Agent<User>({ name: 'Typed', instructions: ({ context }) => `Be kind to ${context.name}.` });
    const structured = new Agent({ name: 'Structured', outputType: z.object({ answer: z.number() }) });
    const triage = Agent.create({ name: 'Triage', handoffs: [structured, handoff(structured)] });
    expectTypeOf(openAiAgent).toBeCallableWith(typed, { options: () => ({ context: { name: 'Ada' }, maxTurns: 3 }) });
    expectTypeOf(openAiAgent).toBeCallableWith(structured);
    expectTypeOf(openAiAgent).toBeCallableWith(triage);
  });
});

describe('a tool that needs an approval', () => {
  it('is a question, and runs when the reply is yes', async () => {
    const calls: string[] = [];
    const { agent } = forecaster(['Oslo'], (city) => ({ degrees: calls.push(city) && 20 }), true);
    const { run, questions } = await runAgent(serve(openAiAgent(agent)), '?', { answers: ['true'] });
    expect(questions[0]).toMatchObject(weatherApproval);
    expect(said(run)).toEqual([['Looking. ', weatherStep('Oslo')], ['20 degrees.']]);
    expect([run.status, calls]).toEqual(['completed', ['Oslo']]);
  });

  it('does not run when the reply is no, and the model goes on', async () => {
    const calls: string[] = [];
    const { agent } = forecaster(['Oslo'], (city) => calls.push(city), true);
    const { run } = await runAgent(serve(openAiAgent(agent)), '?', { answers: ['false'] });
    expect([run.status, calls]).toEqual(['completed', []]);
    expect(said(run).at(-1)).toEqual(['20 degrees.']);
    const no = { parts: [{ content: 'false' }], reason: 'Rain is secret.' };
    const { parts } = await runAgent(serve(openAiAgent(agent)), '?', { answers: [no] });
    expect(JSON.stringify(parts)).toContain('Rain is secret.');
  });

  it('is asked for after a crash before its question', async () => {
    const reached = new Subject<void>();
    const calls: string[] = [];
    let asked = 0;
    const { agent } = forecaster(
      ['Oslo'],
      (city) => ({ degrees: calls.push(city) && 20 }),
      async () => {
        asked += 1;
        if (asked > 1) return true;
        for (let turn = 0; turn < 50; turn += 1) await setImmediate();
        reached.next();
        return new Promise<never>(() => {});
      },
    );
    const left = await crash(serve(openAiAgent(agent), { durable: true }), reached);
    expect([left.run.status, left.questions.length, calls]).toEqual(['awaiting', 1, []]);
    const dropped = { tool_name: 'weather', tool_error: expect.stringContaining('before this call was executed') };
    expect(left.run.output.flatMap(({ parts }) => parts).map(({ metadata }) => metadata)).toContainEqual(
      expect.objectContaining(dropped),
    );
  });

  it('does not run again after a crash: people and the model are told that the outcome is unknown', async () => {
    const reached = new Subject<void>();
    const calls: string[] = [];
    const { agent, model } = forecaster(
      ['Oslo'],
      (city) => {
        calls.push(city);
        reached.next();
        return new Promise<never>(() => {});
      },
      true,
    );
    const { run } = await crash(serve(openAiAgent(agent), { durable: true }), reached, ['true']);
    expect([run.status, calls]).toEqual(['completed', ['Oslo']]);
    const unknown = { value: expect.stringContaining('Whether it took effect is unknown.') };
    expect(said(run)).toEqual([['Looking. ', weatherStep('Oslo', unknown)], ['20 degrees.']]);
    expect(JSON.stringify(model.asked.at(-1))).toContain('Whether it took effect is unknown.');
  });

  it('is asked for once each, and survives a crash at any point', async () => {
    const calls: string[] = [];
    const { agent } = forecaster(['Oslo', 'Rome'], (city) => ({ degrees: calls.push(city) && 20 }), true);
    const durable = serve(openAiAgent(agent), { durable: true });
    const { run, cuts } = await cutEverywhere(durable, '?', { answers: ['true', 'false'], endOf: lastText });
    expect(run.questions).toHaveLength(2);
    expect(cuts).toBeGreaterThan(3);
    expect(new Set(calls)).toEqual(new Set(['Oslo']));
  });
});

describe('a durable agent of the OpenAI Agents SDK', () => {
  it('ends the same after a crash at any point, and repeats no tool whose result is in the journal', async () => {
    const calls: string[] = [];
    const lives: number[] = [];
    const { agent } = forecaster(['Oslo', 'Rome'], (city) => ({ degrees: calls.push(city) && 20 }));
    const run = openAiAgent(agent);
    const counted: AgentFunction = (input, context) => {
      lives.push(calls.length);
      return run(input, context);
    };
    const { run: first, cuts } = await cutEverywhere(serve(counted, { durable: true }), '?', { endOf: lastText });
    expect(said(first)).toEqual([['Looking. ', weatherStep('Oslo'), weatherStep('Rome')], ['20 degrees.']]);
    expect(cuts).toBeGreaterThan(3);
    const perLife = lives.map((begun, life) => calls.slice(begun, lives[life + 1]).sort());
    for (const life of perLife) expect([[], ['Oslo', 'Rome']]).toContainEqual(life);
    expect([perLife[0], perLife.at(-1)]).toEqual([['Oslo', 'Rome'], []]);
  });

  it('continues with the agent that has the conversation after a handoff', async () => {
    const { agent: spanish, model } = talker((input) => say(input, 'Hola, buenos días.'));
    const asked: string[] = [];
    const triage = new Agent({
      name: 'Triage',
      handoffs: [spanish],
      model: new ScriptedModel(() => {
        asked.push('triage');
        return [
          done({
            type: 'function_call',
            callId: 'h',
            name: 'transfer_to_Talker',
            arguments: '{}',
            status: 'completed',
          }),
        ];
      }),
    });
    const { run, cuts } = await cutEverywhere(serve(openAiAgent(triage), { durable: true }), 'Hi');
    expect(said(run).at(-1)).toEqual(['Hola, buenos días.']);
    expect(asked.length).toBeLessThan(cuts);
    expect(model.asked.some((input) => cutText(input) === 'Hola, ')).toBe(true);
  });
});
