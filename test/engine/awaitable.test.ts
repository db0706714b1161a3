import {
  type AgentContext,
  AgentError,
  type AgentFunction,
  type AgentOutput,
  defineAgent,
  progress,
  textOf,
} from 'rivulet';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { concat, EMPTY, firstValueFrom, from, map, of, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';

const agentOf = (run: AgentFunction, durable = false) =>
  defineAgent({ name: 'asks', description: 'Asks.' }, run, { durable });

/** Keeps what the server's log would have at `warn`. */
function warnings() {
  const lines: string[] = [];
  return { lines, log: { debug() {}, info() {}, error() {}, warn: (line: string) => void lines.push(line) } };
}

describe.each([false, true])('in an async agent (durable: %s)', (durable) => {
  it('an awaited question is asked, and resolves to the reply', async () => {
    const agent = agentOf(async (_, context) => {
      const { message } = await context.await('Your name?');
      const again = await context.await('Sure?');
      return `${textOf(message)} ${textOf(again.message)}`;
    }, durable);
    const { text, questions, run } = await runAgent(agent, 'go', { answers: ['Ann', 'yes'] });
    expect([run.status, text]).toEqual(['completed', 'Ann yes']);
    expect(questions.map(({ message }) => textOf(message))).toEqual(['Your name?', 'Sure?']);
  });

  it('an awaited step resolves to its last value, or to undefined where it has none', async () => {
    const agent = agentOf(async (_, context) => {
      const last = await context.step('count', () => from([1, 2, 3]));
      const none = await context.step('nothing', () => EMPTY);
      return `${last} ${none}`;
    }, durable);
    expect((await runAgent(agent, 'go')).text).toBe('3 undefined');
  });

  it('an awaited call resolves to the whole answer as one message of the called agent', async () => {
    const agent = agentOf(async (_, context) => {
      const answer = await context.call('optimist', 'Well?');
      return ['I asked. ', answer];
    }, durable);
    const calls = {
      optimist: () => from<AgentOutput[]>(['All ', 'good', progress('half'), { name: 'a', content: '1' }]),
    };
    const { run } = await runAgent(agent, 'go', { calls });
    expect(run.output.map(({ role, parts }) => [role, parts.map(({ name, content }) => [name, content])])).toEqual([
      ['agent/asks', [[undefined, 'I asked. ']]],
      [
        'agent/optimist',
        [
          [undefined, 'All good'],
          ['a', '1'],
        ],
      ],
    ]);
  });

  it('what fails rejects', async () => {
    const agent = agentOf(async (_, context) => {
      const failing = context.step('bad', () => Promise.reject(new AgentError('no_luck', 'not today')));
      return Promise.resolve(failing).catch((error: Error) => `caught: ${error.message}`);
    }, durable);
    expect((await runAgent(agent, 'go')).text).toBe('caught: not today');
  });
});

describe('a question, step or call', () => {
  it('begins once, however often it is awaited', async () => {
    let worked = 0;
    const agent = agentOf(async (_, context) => {
      const step = context.step('once', () => of(`worked ${++worked}`));
      return [await step, ' ', await step, ' ', ...(await Promise.all([step, step]))];
    });
    expect((await runAgent(agent, 'go')).text).toBe('worked 1 worked 1 worked 1worked 1');
  });

  it('does nothing before it is subscribed to or awaited', async () => {
    let worked = 0;
    const agent = agentOf((_, context) => {
      context.step('never', () => of(++worked));
      return of('done');
    });
    await runAgent(agent, 'go');
    expect(worked).toBe(0);
  });

  it('is an Observable to operators, with all its values', async () => {
    const agent = agentOf((_, context) =>
      concat(
        context.step('s', () => from(['a', 'b'])),
        context.call('other', 'x').pipe(map((said) => textOf(said).toUpperCase())),
      ),
    );
    expect((await runAgent(agent, 'go', { calls: { other: () => from(['c', 'd']) } })).text).toBe('abCD');
  });

  it('that is returned streams', async () => {
    const agent = agentOf((input, context) => context.call('other', input));
    const { events } = await runAgent(agent, 'go', { calls: { other: () => from(['c', 'd']) } });
    expect(events.flatMap((event) => (event.type === 'message.part' ? event.part.content : []))).toEqual(['c', 'd']);
  });

  it('that an async function returns is what `await` makes of it', async () => {
    const calls = { other: () => from(['c', 'd']) };
    const called = await runAgent(
      agentOf(async (input, context) => context.call('other', input)),
      'go',
      { calls },
    );
    expect(called.run.output.map(({ role, parts }) => [role, textOf(parts)])).toEqual([['agent/other', 'cd']]);
    const step = agentOf(async (_, context) => context.step('s', () => from(['a', 'b'])));
    expect((await runAgent(step, 'go')).text).toBe('b');
  });

  it('works the same after a crash, wherever that comes', async () => {
    const agent = agentOf(async (input, context) => {
      const name = await context.step('name', async () => textOf(input));
      const { message } = await context.await(`Is it ${name}?`);
      return [`${name}: ${textOf(message)}. `, await context.call('other', name)];
    }, true);
    const { cuts, run } = await cutEverywhere(agent, 'Ann', { answers: ['yes'], calls: { other: 'Fine' } });
    expect(textOf(run.output)).toBe('Ann: yes. \n\nFine');
    expect(cuts).toBeGreaterThan(3);
  });
});

describe('the role of a message', () => {
  const words = (run: { output: { role: string; parts: { content?: string }[] }[] }) =>
    run.output.map(({ role, parts }) => [role, textOf({ role, parts })]);

  it('is that of the called agent, also of one that this one called', async () => {
    const whole = (content: string) => ({ role: 'user', parts: [{ content }] });
    const agent = agentOf((_, context) => concat(context.call('chair', 'go'), of(whole('My own'))), true);
    const calls = {
      chair: (_: unknown, context: AgentContext) => concat(of(whole('Welcome')), context.call('optimist', 'go')),
      optimist: () => of(whole('Good')),
    };
    const { run } = await runAgent(agent, 'go', { calls });
    expect(words(run)).toEqual([
      ['agent/chair', 'Welcome'],
      ['agent/optimist', 'Good'],
      ['agent/asks', 'My own'],
    ]);
    expect(words((await cutEverywhere(agent, 'go', { calls })).run)).toEqual(words(run));
  });

  it('is the calling agent’s where its parts are loose: they stream into one message', async () => {
    const agent = agentOf((_, context) => concat(of('I say '), context.call('other', 'go')));
    const { run } = await runAgent(agent, 'go', { calls: { other: () => from(['he', 'llo']) } });
    expect(words(run)).toEqual([['agent/asks', 'I say hello']]);
  });

  it('names the called agent in the error about what it emitted', async () => {
    const agent = agentOf((_, context) => context.call('other', 'go'));
    const { run } = await runAgent(agent, 'go', { calls: { other: () => of<AgentOutput>(5 as never) } });
    expect(run.error?.message).toBe(
      'Agent other emitted invalid output: output: got number, not text, a part or a message.',
    );
  });
});

describe('what never began', () => {
  it('is told at `warn` when the run is over, with agent, run and what to do', async () => {
    const { lines, log } = warnings();
    const agent = agentOf((_, context) => {
      void context.await('Really?');
      void context.step('save', () => of(1));
      return context.call('other', 'x');
    });
    const other: AgentFunction = (_, context) => {
      void context.call('third', 'x');
      return of('done');
    };
    const { run } = await runAgent(agent, 'go', { log, calls: { other } });
    const says = (name: string, what: string) =>
      `agent ${name}, run ${run.run_id}: ${what} was made and never began; await it, subscribe to it, or return it`;
    expect(lines).toEqual([
      says('asks', 'context.await'),
      says('asks', 'Step save'),
      says('other', 'context.call of third'),
    ]);
  });

  it('is not told of a run that was cancelled, nor of what was subscribed to', async () => {
    const { lines, log } = warnings();
    const signal = AbortSignal.abort();
    const both = agentOf((_, context) => concat(context.await('1?'), context.await('2?')).pipe(map(() => '')));
    await runAgent(both, 'go', { log, signal });
    const awaited = agentOf(async (_, context) => context.step('a', () => of('a')));
    await runAgent(awaited, 'go', { log });
    const listed = agentOf((_, context) => firstValueFrom(context.step('b', () => of('b', 'c')).pipe(toArray())));
    expect((await runAgent(listed, 'go', { log })).text).toBe('bc');
    expect(lines).toEqual([]);
  });
});

describe('a run that fails', () => {
  it('is told at `warn` with agent, run and stack, without passwords and queries of URLs', async () => {
    const { lines, log } = warnings();
    const agent = agentOf(() => {
      throw new TypeError('GET https://ann:secret@example.com/a?key=secret failed');
    });
    const { run } = await runAgent(agent, 'go', { log });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(
      `agent asks, run ${run.run_id} failed: TypeError: GET https://example.com/a failed\n    at `,
    );
    expect(lines[0]).toContain('awaitable.test.ts:');
    expect(lines[0]).not.toContain('secret');
  });

  it.each<[string, unknown, string]>([
    ['a text', 'just text', 'just text'],
    ['nothing', undefined, 'The agent threw a value that is not an Error.'],
  ])('has the message where its agent threw %s', async (_, thrown, message) => {
    const { lines, log } = warnings();
    await runAgent(
      agentOf(() => Promise.reject(thrown)),
      'go',
      { log },
    );
    expect(lines).toEqual([expect.stringMatching(new RegExp(`^agent asks, run [\\w-]+ failed: ${message}$`))]);
  });
});

describe('what an async agent returns', () => {
  it.each<[string, AgentFunction, string]>([
    ['an array', async () => ['a', 'b'], 'ab'],
    ['an Observable', async () => from(['a', 'b']), 'ab'],
    [
      'a generator',
      async () =>
        (async function* () {
          yield* ['a', 'b'];
        })(),
      'ab',
    ],
    ['a text', async () => 'ab', 'ab'],
    ['a part', async () => ({ content: 'ab' }), 'ab'],
    ['nothing', async () => undefined as never, ''],
  ])('may be %s', async (_, run, text) => {
    const ran = await runAgent(agentOf(run), 'go');
    expect([ran.run.status, ran.text]).toEqual(['completed', text]);
  });

  it.each<[string, AgentFunction, string]>([
    ['a number', async () => 5 as never, 'output: got number, not text, a part or a message'],
    ['a list with a number', async () => ['a', 5 as never], 'output: got number, not text, a part or a message'],
  ])('fails the run where it is %s', async (_, run, problem) => {
    const { error } = (await runAgent(agentOf(run), 'go')).run;
    expect(error?.message).toBe(`Agent asks emitted invalid output: ${problem}.`);
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'undefined'],
    ['a number', 5, 'number'],
    ['one part', { content: 'a' }, 'one object (content), which belongs into an array or of(…)'],
  ])('has to be a promise or a stream: %s is refused', async (_, returned, got) => {
    const { error } = (
      await runAgent(
        agentOf(() => returned as never),
        'go',
      )
    ).run;
    expect(error?.message).toBe(
      `Agent asks emitted invalid output: it returned ${got}, expected a text, a promise, an iterable or an Observable of output.`,
    );
  });
});
