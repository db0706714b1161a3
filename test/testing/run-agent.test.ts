import { type AgentContext, AgentError, defineAgent, textOf } from 'rivulet';
import { runAgent } from 'rivulet/testing';
import { concat, from, map, NEVER, of, race, timer } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { agent, echo } from '../support/agents.ts';
import { oneMessage } from '../support/run-output.ts';

const twice = agent('twice', async (_, context) => {
  const first = await context.await({ type: 'message', message: { role: 'agent', parts: [{ content: '1?' }] } });
  const second = await context.await('2?', { schema: { type: 'integer' } });
  return `${textOf(first.message)} and ${textOf(second.message)}`;
});

describe('runAgent', () => {
  it('answers events, text, parts and the run', async () => {
    const { events, text, parts, questions, run } = await runAgent(
      agent('says', () => from(['a', { name: 'b.txt', content: 'b' }])),
      'go',
    );
    expect(events.map(({ type }) => type)).toEqual(oneMessage(2));
    expect([run.status, text, questions]).toEqual(['completed', 'ab', []]);
    expect(parts.map(({ name, content }) => [name, content])).toEqual([
      [undefined, 'a'],
      ['b.txt', 'b'],
    ]);
  });

  it('takes a text, parts or messages', async () => {
    const message = { role: 'user', parts: [{ content: 'c' }] };
    expect((await runAgent(echo, 'a')).text).toBe('a');
    expect((await runAgent(echo, ['a', { content: 'b' }])).text).toBe('ab');
    expect((await runAgent(echo, ['a', message])).text).toBe('a\n\nc');
  });

  it('replies to questions in their order', async () => {
    const { text, questions } = await runAgent(twice, 'go', { answers: ['x', '2'] });
    expect(text).toBe('x and 2');
    expect(questions.map(({ message }) => textOf(message))).toEqual(['1?', '2?']);
  });

  it('asks a function for replies', async () => {
    const answers = ({ schema }: { schema?: object }) => (schema === undefined ? 'text' : '5');
    expect((await runAgent(twice, 'go', { answers })).text).toBe('text and 5');
  });

  it('leaves the run awaiting where a list has no reply', async () => {
    const { run, questions } = await runAgent(twice, 'go', { answers: ['x'] });
    expect([run.status, questions.length, run.await_request]).toEqual(['awaiting', 2, questions[1]]);
  });

  it('waits for the agent where a function has no reply', async () => {
    const impatient = agent('impatient', (_, context) =>
      race(context.await('?').pipe(map(() => 'replied')), timer(1).pipe(map(() => 'gave up'))),
    );
    expect((await runAgent(impatient, 'go', { answers: () => undefined })).text).toBe('gave up');
  });

  it('takes a boolean as the reply to a question for an approval', async () => {
    const asks = agent('asks', async (_, context) => {
      const { message } = await context.await('Pay?', { schema: { type: 'boolean' } });
      return `It is ${textOf(message)}.`;
    });
    expect((await runAgent(asks, 'go', { answers: [true] })).text).toBe('It is true.');
    expect((await runAgent(asks, 'go', { answers: () => false })).text).toBe('It is false.');
  });

  it('names the question whose reply does not fit', async () => {
    await expect(runAgent(twice, 'go', { answers: ['one', 'two'] })).rejects.toThrow(
      /^The reply to the question "2\?" is refused: .*must be integer/,
    );
  });

  it('rejects where a reply does not fit its question', async () => {
    await expect(runAgent(twice, 'go', { answers: ['x', 'two'] })).rejects.toThrow('must be integer');
  });

  it.each([
    ['a refused reply', () => 'two', 'must be integer'],
    ['an error of the function', () => Promise.reject(new Error('no idea')), 'no idea'],
  ])('stops the agent after %s', async (_, answers, problem) => {
    const stopped = new Promise((resolve) => {
      const asks = agent('asks', (_, context) => {
        context.signal.addEventListener('abort', resolve);
        return context.await('2?', { schema: { type: 'integer' } }).pipe(map(() => 'replied'));
      });
      void expect(runAgent(asks, 'go', { answers }))
        .rejects.toThrow(problem)
        .then(resolve);
    });
    expect(await stopped).toBeInstanceOf(Event);
  });

  it('does not wait for a function whose promise never settles, once the run is over', async () => {
    const asks = agent('asks', (_, context) =>
      race(context.await('?').pipe(map(() => 'replied')), timer(1).pipe(map(() => 'gave up'))),
    );
    expect((await runAgent(asks, 'go', { answers: () => new Promise(() => {}) })).text).toBe('gave up');
    const controller = new AbortController();
    const answers = () => new Promise<undefined>(() => controller.abort());
    expect((await runAgent(twice, 'go', { answers, signal: controller.signal })).run.status).toBe('cancelled');
  });

  it('rejects where the agent does not take the input', async () => {
    const plain = agent('plain', () => 'x', { input_content_types: ['text/plain'] });
    await expect(runAgent(plain, { content_type: 'image/png', content_url: 'https://example.com/a' })).rejects.toThrow(
      'agent plain takes text/plain, not image/png',
    );
  });

  it('answers a run that failed, with its error', async () => {
    const failing = agent('fails', () => Promise.reject(new AgentError('quota', 'used up', { left: 0 })));
    expect((await runAgent(failing, 'go')).run).toMatchObject({
      status: 'failed',
      error: { message: 'used up', data: { code: 'quota', left: 0 } },
    });
  });

  it('has stand-ins for called agents: functions, agents under any name, and texts', async () => {
    const caller = agent('caller', (_, context) => concat(...['f', 'a', 't'].map((name) => context.call(name, name))));
    const calls = { f: (_: unknown, { agent_name }: AgentContext) => of(agent_name), a: echo, t: 'text' };
    expect((await runAgent(caller, 'go', { calls })).text).toBe('fa\n\ntext'.replace('fa', 'f\n\na'));
  });

  it('fails a call of an agent without a stand-in', async () => {
    const { run } = await runAgent(
      agent('caller', (_, context) => context.call('missing', 'x')),
      'go',
    );
    expect(run.error?.message).toContain('There is no agent missing');
  });

  it('answers a history with the questions and the replies in their places, as the session has it', async () => {
    const { history } = await runAgent(twice, 'go', { answers: ['x', '2'] });
    expect(history.map(({ role, parts }) => [role, parts[0]?.content])).toEqual([
      ['user', 'go'],
      ['agent/twice', '1?'],
      ['user', 'x'],
      ['agent/twice', '2?'],
      ['user', '2'],
      ['agent/twice', 'x and 2'],
    ]);
  });

  it('gives the session history and state, and answers them for the next run', async () => {
    const remembers = agent('remembers', async (_, { session }) => {
      const before = (await session.state<number>()) ?? 0;
      await session.setState(before + 1);
      return [`${before}: `, ...(await historyOf(session))];
    });
    const historyOf = (session: AgentContext['session']): Promise<string[]> =>
      new Promise((resolve) => {
        const texts: string[] = [];
        session.history.subscribe({ next: (one) => texts.push(textOf(one)), complete: () => resolve(texts) });
      });
    const first = await runAgent(remembers, 'a', { history: [{ role: 'user', parts: [{ content: 'z' }] }], state: 7 });
    expect([first.text, first.state]).toEqual(['7: z', 8]);
    const second = await runAgent(remembers, 'b', { history: first.history, state: first.state });
    expect([second.text, second.state]).toEqual(['8: za7: z', 9]);
  });

  it('cancels the run when its signal fires', async () => {
    const controller = new AbortController();
    let cleared = false;
    const endless = agent('endless', (_, { signal }) => {
      signal.addEventListener('abort', () => {
        cleared = true;
      });
      queueMicrotask(() => controller.abort());
      return NEVER;
    });
    const { run } = await runAgent(endless, 'go', { signal: controller.signal });
    expect([run.status, cleared]).toEqual(['cancelled', true]);
  });

  it('has the times of its clock', async () => {
    const { run, events } = await runAgent(echo, 'a', { clock: () => Date.UTC(2020, 0, 1) });
    expect([run.created_at, run.finished_at]).toEqual(['2020-01-01T00:00:00.000Z', '2020-01-01T00:00:00.000Z']);
    expect(JSON.stringify(events)).not.toContain(`"20${new Date().getFullYear() - 2000}-`);
  });

  it('lets a question expire by its clock, and takes a reply before that time', async () => {
    let now = Date.UTC(2020, 0, 1);
    const clock = () => now;
    const asks = agent('asks', async (_, context) => textOf((await context.await('?', { expiresIn: 60_000 })).message));
    const { questions, text } = await runAgent(asks, 'go', { clock, answers: ['yes'] });
    expect([questions[0]?.expires_at, text]).toEqual(['2020-01-01T00:01:00.000Z', 'yes']);
    const answers = () => {
      now += 60_000;
      return undefined;
    };
    const { run } = await runAgent(asks, 'go', { clock, answers, limits: { sweepInterval: 1 } });
    expect(run.error?.data?.reason).toBe('await_timeout');
  });

  it('follows a clock that the test fakes, also during the run', async () => {
    onTestFinished(() => void vi.useRealTimers());
    const asks = agent('asks', async (_, context) => {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2020, 0, 1) });
      return textOf((await context.await('?', { expiresIn: 60_000 })).message);
    });
    const { questions, run } = await runAgent(asks, 'go', { answers: ['yes'] });
    expect(questions[0]).toMatchObject({
      message: { created_at: '2020-01-01T00:00:00.000Z' },
      expires_at: '2020-01-01T00:01:00.000Z',
    });
    expect([run.status, run.finished_at]).toEqual(['completed', '2020-01-01T00:00:00.000Z']);
  });

  it('runs durable agents as well', async () => {
    const durable = defineAgent({ name: 'd', description: 'D.' }, (_, context) => context.step('s', () => of('s')), {
      durable: true,
    });
    expect((await runAgent(durable, 'go')).text).toBe('s');
  });
});
