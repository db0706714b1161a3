import {
  concat,
  defer,
  lastValueFrom,
  map,
  merge,
  mergeMap,
  NEVER,
  type Observable,
  type ObservableInput,
  of,
  toArray,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  type Agent,
  type AgentContext,
  type AgentFunction,
  type AgentOptions,
  defineAgent,
} from '../../src/core/agent.ts';
import { textOf } from '../../src/core/parts.ts';
import type { Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { cutAll, Effects, RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { begin, startEngine } from '../../src/testing/engine.ts';
import { engineOf } from '../support/engine.ts';
import { again, runOf, toTheEnd, whole } from '../support/lives.ts';
import { turn, turns } from '../support/turn.ts';

const agentOf = (name: string, run: AgentFunction, options: AgentOptions = { durable: true }) =>
  defineAgent({ name, description: `${name}.` }, run, options);

const textsOf = ({ output }: Run): string[] => output.map((message) => textOf(message));

describe('agents that are called side by side', () => {
  it('get the replies to their own questions, also where another one is faster in a later life', async () => {
    let life = 1;
    const pay = agentOf('pay', async function* (input, context) {
      const [payer = '', first, later] = textOf(input).split(' ');
      await turns(Number(life === 1 ? first : later));
      yield `${payer}: ${textOf((await context.await('Pay?')).message)}. `;
    });
    const both = agentOf('both', (_, { call }) => merge(call('pay', 'alice 1 30'), call('pay', 'bob 30 1')));
    const store = new RecordingStore();
    const engine = await startEngine([both, pay], store);
    const run_id = await begin(engine, both, 'go', crypto.randomUUID());
    for (let run = await runOf(engine, run_id); run.status !== 'awaiting'; run = await runOf(engine, run_id))
      await turn();
    await turns(60);
    const { await_request } = await runOf(engine, run_id);
    expect(await_request?.path).toBe('pay/1');
    await engine.stop();
    life = 2;
    const next = await startEngine([both, pay], store);
    const replies = ['yes', 'no'];
    const { run } = await toTheEnd(next, run_id, () => replies.shift() ?? 'nothing');
    await next.stop();
    expect(textsOf(run).join('')).toBe('alice: yes. bob: no. ');
  });

  it('may be faster or slower in a later life, also those that a called agent calls', async () => {
    let life = 1;
    const speaker = (name: string, first: number, later: number) =>
      agentOf(name, async function* (_, context) {
        await turns(life === 1 ? first : later);
        yield `${name} begins; `;
        await context.step('think', () => turns(20));
        yield `${name} ends; `;
      });
    const agents = [
      agentOf('asks', (_, { call }) => call('team', 'go')),
      agentOf('team', (_, { call }) => merge(call('a', 'x'), call('b', 'x'))),
      speaker('a', 1, 10),
      speaker('b', 10, 1),
    ];
    const first = await whole(agents);
    life = 2;
    for (let cut = 1; cut < first.store.commits.length; cut += 1) {
      const ended = await again(agents, first.store, cut, undefined, { idleTimeout: 500, sweepInterval: 20 });
      const said = ended === undefined ? '' : textsOf(ended.run).join('');
      for (const name of ['a', 'b']) expect(said, `cut off after commit ${cut}`).toMatch(`${name} ends; `);
    }
  });

  it('may begin with the same words', async () => {
    let life = 1;
    const speaks = agentOf('speaks', async function* (input, context) {
      const [word = '', first, later] = textOf(input).split(' ');
      await turns(life === 1 ? Number(first) : Number(later));
      yield 'I say ';
      yield `${word}, `;
      await context.step('think', () => turns(20));
      yield 'and that is all. ';
    });
    const both = agentOf('both', (_, { call }) => merge(call('speaks', 'yes 1 10'), call('speaks', 'no 10 1')));
    const agents = [both, speaks];
    const first = await whole(agents);
    life = 2;
    for (let cut = 1; cut < first.store.commits.length; cut += 1) {
      const ended = await again(agents, first.store, cut, undefined, { idleTimeout: 500, sweepInterval: 20 });
      const said = ended === undefined ? '' : textsOf(ended.run).join('');
      expect([...said.matchAll(/yes|no|all/g)].join(' '), `cut off after commit ${cut}`).toMatch(
        /^(yes no|no yes) all all$/,
      );
    }
  });

  it('get the values of their own steps', async () => {
    let life = 1;
    const worker = (name: string, first: number, later: number) =>
      agentOf(name, async function* (_, context) {
        await turns(life === 1 ? first : later);
        const price = await context.step('price', async () => `price of ${name}`);
        await context.step('book', () => turns(40));
        yield `${name}: ${price}; `;
      });
    const agents = [
      agentOf('both', (_, { call }) => merge(call('a', 'x'), call('b', 'x'))),
      worker('a', 1, 20),
      worker('b', 20, 1),
    ];
    const first = await whole(agents);
    life = 2;
    for (let cut = 1; cut < first.store.commits.length; cut += 1) {
      const ended = await again(agents, first.store, cut);
      if (ended === undefined) continue;
      const said = textsOf(ended.run).join('').split('; ').sort().join('; ');
      expect(said, `cut off after commit ${cut}`).toBe('; a: price of a; b: price of b');
    }
  });
});

describe('the work of a step', () => {
  const plain = agentOf(
    'plain',
    async (_, context) => {
      context.usage({ tokens: 7 });
      await turns(5);
      return 'done';
    },
    { durable: false },
  );
  const helper = agentOf('helper', async function* (input, context) {
    yield `${textOf(input)} and ${await context.step('help', async () => 'help')}`;
  });

  it.each<[string, AgentFunction]>([
    [
      'takes steps',
      (_, { step }) =>
        step('outer', async () => `${await step('inner', async () => 1)} ${await step('inner', async () => 2)}`),
    ],
    [
      'awaits an agent that is not durable',
      (_, { step, call }) => step('outer', async () => textOf([await call('plain', 'hi')])),
    ],
    ['calls agents', (_, { step, call }) => step('outer', async () => textOf([await call('helper', 'hi')]))],
    [
      'passes on the output of an agent as it comes',
      (_, { step, call }) =>
        step('outer', () =>
          merge(
            call('helper', 'one'),
            call('helper', 'two'),
            defer(() => step('inner', () => of('three'))),
          ).pipe(toArray()),
        ).pipe(
          map((all) =>
            all
              .map((one) => textOf(one))
              .sort()
              .join(),
          ),
        ),
    ],
    [
      'reads the history of the session',
      (_, { step, session }) =>
        step('outer', async () => `${(await lastValueFrom(session.history.pipe(toArray()))).length} messages`),
    ],
    [
      'reads and stores the state of the session',
      (_, { step, session }) =>
        step('outer', async () => {
          await session.setState({ n: 1 });
          return JSON.stringify(await session.state());
        }),
    ],
    [
      'reports usage',
      (_, { step, usage }) =>
        concat(
          step('outer', async () => {
            usage({ input_tokens: 3, output_tokens: 4 });
            await step('inner', async () => usage({ tokens: 5 }));
            return 'used';
          }),
          defer(async () => {
            usage({ tokens: 6 });
            return '; ';
          }),
        ),
    ],
  ])('%s, and the run ends alike, wherever it is cut off', async (_, work) => {
    const agent = agentOf('works', (input, context) =>
      concat(
        work(input, context) as Observable<string>,
        context.await('Is that right?').pipe(map(({ message }) => ` ${textOf(message)}`)),
      ),
    );
    const calls = { helper, plain };
    const endOf = (run: Run) => ({ said: textsOf(run), tokens: run.usage?.tokens });
    const { faults, cuts, run } = await cutAll(agent, 'go', { answers: () => 'yes', calls, endOf, state: { n: 0 } });
    expect(faults).toEqual([]);
    expect(cuts).toBeGreaterThan(2);
    expect(run.status).toBe('completed');
    expect(textsOf(run).join('')).toMatch(/ yes$/);
  });

  it.each<[string, (context: AgentContext, charge: (key: string) => Promise<string>) => ObservableInput<string>]>([
    ['awaited', async ({ step }, charge) => charge(await step('key', async () => crypto.randomUUID()))],
    ['subscribed to', ({ step }, charge) => step('key', async () => crypto.randomUUID()).pipe(mergeMap(charge))],
  ])('has an effect with the value of a step that it has %s only when that is durable', async (_, work) => {
    const effects = new Effects();
    const charge = async (key: string): Promise<string> => {
      effects.add('charge', key);
      await turns(3);
      return 'charged';
    };
    const agent = agentOf('charges', (_, context) => context.step('charge', () => work(context, charge)));
    const { faults, run } = await cutAll(agent, 'go', { effects });
    expect([faults, textsOf(run)]).toEqual([[], ['charged']]);
  });

  it('that was cut off does not repeat the steps that it took', async () => {
    const done: string[] = [];
    let life = 1;
    const agent = agentOf('nested', (_, { step }) =>
      step('outer', async () => {
        const key = await step('inner', async () => {
          done.push('inner');
          return `key of life ${life}`;
        });
        done.push(`outer with ${key}`);
        // Work that the process dies in.
        if (life === 1) await step('wait', () => NEVER);
        return key;
      }),
    );
    const store = new RecordingStore();
    const engine = await startEngine([agent], store);
    await begin(engine, agent, 'go', crypto.randomUUID());
    while (!store.commits.flat().some(({ journal = [] }) => journal.join().includes('key of life'))) await turn();
    const commits = store.commits.length;
    life = 2;
    const ended = await again([agent], store, commits);
    await engine.stop();
    expect(ended === undefined ? [] : textsOf(ended.run)).toEqual(['key of life 1']);
    expect(done.filter((one) => one === 'inner')).toHaveLength(1);
  });

  it('cannot ask: the question would be asked anew after a crash', async () => {
    const asking = agentOf('asking', (_, context) =>
      context.step('outer', async () => textOf((await context.await('Really?')).message)),
    );
    const { run } = await whole([asking]);
    expect(run.status).toBe('failed');
    expect(run.error?.message).toContain('asks within the work of step outer#0');
  });

  it('cannot call an agent that asks', async () => {
    const outer = agentOf('outer', (_, context) =>
      context.step('tool', async () => textOf(await context.call('asking', 'x'))),
    );
    const asking = agentOf('asking', async (_, context) => textOf((await context.await('Sure?')).message));
    const { run } = await whole([outer, asking]);
    expect(run.error?.message).toContain('Agent asking asks within the work of step tool#0');
  });
});

describe('the state of a session', () => {
  it('is the new one, where another run replaces the state while it is read', async () => {
    const store = new MemoryStore();
    const sets = agentOf('sets', async (input, { session }) => {
      await session.setState(textOf(input));
      return 'set';
    });
    const reads = agentOf('reads', async (_, { session }) => `It is ${await session.state()}.`);
    const engine = await engineOf([sets, reads], store);
    const session_id = crypto.randomUUID();
    const end = async (agent: Agent, text: string): Promise<Run> =>
      (await toTheEnd(engine, await begin(engine, agent, text, session_id))).run;
    await end(sets, 'old');
    const resources = store.resources.bind(store);
    store.resources = async (ids) => {
      store.resources = resources;
      await end(sets, 'new');
      return resources(ids);
    };
    expect(textsOf(await end(reads, 'go'))).toEqual(['It is new.']);
  });

  it('is stored in one commit with its step, so that a later life does not store it again', async () => {
    const agent = agentOf('counts', async function* (_, { session }) {
      await session.setState({ n: 1 });
      yield 'stored';
    });
    const { store } = await whole([agent]);
    const stored = store.commits.flat().filter(({ state }) => state !== undefined);
    expect(stored).toHaveLength(1);
    expect(stored[0]?.journal?.join()).toContain('session.setState#0');
    for (let cut = 1; cut < store.commits.length; cut += 1) {
      const had = store.commits
        .slice(0, cut)
        .flat()
        .some(({ state }) => state !== undefined);
      const disk = new RecordingStore();
      for (const writes of store.commits.slice(0, cut)) await disk.commit(writes);
      const [row] = await disk.runs({}, undefined, 1);
      if (row === undefined) continue;
      const before = disk.commits.length;
      const engine = await startEngine([agent], disk);
      await toTheEnd(engine, row.run_id);
      await engine.stop();
      const again = disk.commits
        .slice(before)
        .flat()
        .filter(({ state }) => state !== undefined);
      expect(again, `cut off after commit ${cut}`).toHaveLength(had ? 0 : 1);
    }
  });
});

describe('a run that has read the history of its session', () => {
  const reads = agentOf('reads', async function* (_, context) {
    const before = await lastValueFrom(context.session.history.pipe(toArray()));
    await context.step('model', async () => `an answer to ${before.length}`);
    yield textOf((await context.await('Go on?')).message);
  });

  it('goes on after an earlier turn was deleted', async () => {
    const store = new RecordingStore();
    const says = agentOf('says', (input) => textOf(input));
    const agents = [reads, says];
    const engine = await startEngine(agents, store);
    const session_id = crypto.randomUUID();
    const turnsBefore: string[] = [];
    for (const text of ['one', 'two', 'three']) {
      const run_id = await begin(engine, says, text, session_id);
      await toTheEnd(engine, run_id);
      turnsBefore.push(run_id);
    }
    const run_id = await begin(engine, reads, 'go', session_id);
    while ((await runOf(engine, run_id)).status !== 'awaiting') await turn();
    await engine.stop();
    for (const [index, deleted] of turnsBefore.entries()) {
      const disk = await store.after(store.commits.length);
      const next = await startEngine(agents, disk);
      await next.remove(deleted);
      const { run } = await toTheEnd(next, run_id, () => 'on');
      await next.stop();
      expect(textsOf(run), `without turn ${index + 1}`).toEqual(['on']);
    }
  });
});

describe('a model in a step', () => {
  /** What the model says in each life, a value in each turn; the process dies after some of them. */
  const speaks = (lives: readonly (readonly string[])[]) => {
    let life = 0;
    const agent = agentOf('speaks', (_, { step }) => {
      const said = lives[life] ?? [];
      life += 1;
      return concat(
        step('model', () =>
          (async function* () {
            for (const word of said) {
              await turns(3);
              yield word;
            }
          })(),
        ),
        of('!'),
      );
    });
    return agent;
  };

  /** The text of each message after a death that came when the log had some text. */
  async function afterDeath(lives: readonly (readonly string[])[], last: string) {
    const store = new RecordingStore();
    const agent = speaks(lives);
    const engine = await startEngine([agent], store);
    const run_id = await begin(engine, agent, 'go', crypto.randomUUID());
    const first = toTheEnd(engine, run_id);
    await first;
    await engine.stop();
    const commits = store.commits.findIndex((writes) => writes.some(({ lines }) => lines.join().includes(last))) + 1;
    const ended = await again([agent], store, commits);
    if (ended === undefined) throw new Error('the run was not stored');
    return ended;
  }

  it('that says something else after a crash begins a new message; what it said before ends as interrupted', async () => {
    const { run } = await afterDeath(
      [
        ['The ', 'cat ', 'sat'],
        ['The ', 'dog ', 'ran'],
      ],
      'cat ',
    );
    expect(run.status).toBe('completed');
    expect(textsOf(run)).toEqual(['The cat ', 'The dog ran!']);
    expect(run.output.map(({ finish_reason }) => finish_reason)).toEqual(['interrupted', undefined]);
  });

  it('that says the same after a crash goes on in the same message', async () => {
    const { run } = await afterDeath(
      [
        ['The ', 'cat ', 'sat'],
        ['The ', 'cat ', 'ran'],
      ],
      'cat ',
    );
    expect(textsOf(run)).toEqual(['The cat ran!']);
    expect(run.output[0]?.finish_reason).toBeUndefined();
  });

  it('that says less after a crash begins a new message', async () => {
    const { run } = await afterDeath([['The ', 'cat ', 'sat'], ['The ']], 'cat ');
    expect(textsOf(run)).toEqual(['The cat ', 'The !']);
  });

  /** What an agent makes of what the model says in its own run, and in the answer of an agent that it awaits. */
  const listens = agentOf('listens', async (_, { call }) => `heard: ${textOf(await call('speaks', 'go'))}`);
  it.each([
    { name: 'that is streamed', first: [], expected: ['The cat ', 'The dog ran!'] },
    { name: 'whose answer is awaited', first: [listens], expected: ['heard: The dog ran!'] },
  ])('$name ends alike in all further lives, wherever they are cut off', async ({ first, expected }) => {
    const lives = [
      ['The ', 'cat ', 'sat'],
      ['The ', 'dog ', 'ran'],
    ];
    const store = new RecordingStore();
    const agents = [...first, speaks(lives)];
    const engine = await startEngine(agents, store);
    await toTheEnd(engine, await begin(engine, agents[0] ?? listens, 'go', crypto.randomUUID()));
    await engine.stop();
    const commits = store.commits.findIndex((writes) => JSON.stringify(writes).includes('cat ')) + 1;
    const disk = new RecordingStore();
    for (const writes of store.commits.slice(0, commits)) await disk.commit(writes);
    const [row] = await disk.runs({}, undefined, 1);
    const second = await startEngine(agents, disk);
    const { run } = await toTheEnd(second, row?.run_id ?? '');
    await second.stop();
    expect(textsOf(run)).toEqual(expected);
    for (let cut = commits + 1; cut < disk.commits.length; cut += 1) {
      // The third life's model says what the second one's has said.
      const third = speaks([lives[1] ?? []]);
      const ended = await again([...first, third], disk, cut);
      expect(ended === undefined ? [] : textsOf(ended.run), `cut off after commit ${cut}`).toEqual(expected);
    }
  });
});
