import { type AgentContext, AgentError, type AgentFunction, type Awaitable, defineAgent } from 'rivulet';
import { lastValueFrom, map, of, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { logEndedRuns } from '../../src/server/ended-run-log.ts';
import { cutEverywhere } from '../../src/testing/cut-everywhere.ts';
import { engineOf } from '../support/engine.ts';
import { begin, toTheEnd } from '../support/lives.ts';

class Custom extends TypeError {
  readonly code = 'E_CUSTOM';
}

const failing = (): never => {
  throw new Custom('not like this', { cause: new RangeError('the cause', { cause: 'a text' }) });
};

/** All that an agent can tell of an error. */
function shown(error: unknown): string {
  const { name, message, stack, cause, errors } = error as AggregateError;
  const inner = [cause, ...(errors ?? [])].map((one) => (one instanceof Error ? shown(one) : String(one)));
  return `${name} ${message} ${Object(error).constructor.name} ${Object(error).code} ${stack} [${inner.join()}]`;
}

/** What an agent begins, and its promise rejects, as its Observable fails. */
const cases: [string, (context: AgentContext) => Awaitable<unknown, unknown>, RegExp][] = [
  ['a step', ({ step }) => step('bad', failing), /^TypeError not like this .*failing.*RangeError the cause/s],
  [
    'a step with several errors',
    ({ step }) => step('bad', () => Promise.any([Promise.reject(new Custom('a')), Promise.reject(new Error('b'))])),
    /^AggregateError .*TypeError a .*Error b /s,
  ],
  ['a step that throws a text', ({ step }) => step('bad', () => Promise.reject('text')), /^AgentError text /],
  ['a step whose value is not JSON', ({ step }) => step('bad', () => of(5n)), /^RivuletError Step bad#\d emitted/],
  ['a call of an agent that fails', ({ call }) => call('fails', 'go'), /^AgentError used up AgentError quota /],
  ['a call of a durable agent that fails', ({ call }) => call('durable', 'go'), /^TypeError not like this /],
  [
    'a call of an agent that is missing',
    ({ call }) => call('missing', 'go'),
    /^RivuletError There is no agent missing/,
  ],
  ['a call with invalid input', ({ call }) => call('fails', { role: 'owner', parts: [] } as never), /^RivuletError /],
  [
    'a call of an agent with invalid output',
    ({ call }) => call('invalid', 'go'),
    /^RivuletError Agent invalid emitted/,
  ],
  [
    'a call of an agent that returns no output',
    ({ call }) => call('silent', 'go'),
    /^RivuletError .* it returned number/,
  ],
  ['an invalid question', (context) => context.await('?', { schema: { type: 'no' } }), /^RivuletError .*await.schema/],
];

const durable = (name: string, run: AgentFunction) => defineAgent({ name, description: name }, run, { durable: true });

describe('an error that a durable agent catches', () => {
  const called = {
    fails: async () => {
      throw new AgentError('quota', 'used up');
    },
    durable: durable('durable', (_, { step }) => step<string>('bad', failing)),
    invalid: durable('invalid', () => [{ content: 5 as never }]),
    silent: durable('silent', () => 5 as never),
  };
  const told = [() => 'no error', shown] as const;

  it.each([
    ['awaits', (work: Awaitable<unknown, unknown>) => work.then(...told)],
    ['subscribes to', (work: Awaitable<unknown, unknown>) => lastValueFrom(work).then(...told)],
  ])(
    'has the same name, class, message, stack and causes in each life, where the agent %s its work',
    async (_, caught) => {
      const agent = durable('catches', async function* (_, context) {
        for (const [what, begin] of cases) yield { name: what, content: await caught(begin(context)) };
        yield await context.step('last', () => timer(1).pipe(map(() => 'end')));
      });
      const { run, cuts } = await cutEverywhere(agent, 'go', { calls: called });
      expect(run.error).toBe(undefined);
      const shown = run.output.flatMap(({ parts }) => parts.map(({ name, content }) => [name, content]));
      expect(shown).toEqual([
        ...cases.map(([what, , like]) => [what, expect.stringMatching(like)]),
        [undefined, 'end'],
      ]);
      expect(cuts).toBeGreaterThan(5);
    },
  );
});

describe('a run that fails with the error of a step', () => {
  it('shows the client its message, and the server’s log has the user’s code and the causes', async () => {
    const agent = durable('fails', (_, { step }) => step<string>('bad', failing));
    const engine = await engineOf([agent]);
    const lines: object[] = [];
    logEndedRuns(engine, { warn: (fields) => void lines.push(fields) });
    const { run } = await toTheEnd(engine, await begin(engine, 'fails'));
    expect(run.error).toEqual({ code: 'server_error', message: 'not like this' });
    const stack = /^TypeError: not like this\n.*failing.*\nCaused by: RangeError: the cause\n.*\nCaused by: a text$/s;
    expect(lines).toMatchObject([{ err: { stack: expect.stringMatching(stack) } }]);
  });

  it('has the causes of what an agent throws without a step in the log as well', async () => {
    const agent = defineAgent({ name: 'plain', description: 'Fails.' }, async () => failing());
    const engine = await engineOf([agent]);
    const failures: (string | undefined)[] = [];
    engine.on('runEnded', ({ failure }) => void failures.push(failure));
    await toTheEnd(engine, await begin(engine, 'plain'));
    expect(failures[0]).toMatch(/^TypeError: not like this\n.*\nCaused by: RangeError: the cause\n/s);
  });
});
