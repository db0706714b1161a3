import { readdir, readFile } from 'node:fs/promises';
import { type Agent, textOf } from 'rivulet';
import { type RanAgent, type RunAgentOptions, runAgent } from 'rivulet/testing';
import { EMPTY, of, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';

const folder = new URL('../../examples/agents/', import.meta.url);
const files = (await readdir(folder)).filter((name) => name.endsWith('.ts'));
const agents = await Promise.all(
  files.map(async (name): Promise<Agent> => (await import(`../../examples/agents/${name.slice(0, -3)}.ts`)).default),
);

const calls = Object.fromEntries(agents.map((agent) => [agent.manifest.name, agent]));

const run = (agent_name: string, text: string, options: RunAgentOptions = {}) => {
  const { [agent_name]: agent, ...others } = calls;
  if (agent === undefined) throw new Error(`there is no example ${agent_name}`);
  return runAgent(agent, text, { calls: others, ...options });
};
/** The session as a run left it, for the next run. */
const next = ({ history, state }: RanAgent): RunAgentOptions => ({ history, state });
const answer = async (agent: string, text: string): Promise<string> => (await run(agent, text)).text;

describe('every file of examples/agents', () => {
  it.each(files)('%s can be copied by itself: it imports rivulet and rxjs only', async (name) => {
    const source = await readFile(new URL(name, folder), 'utf8');
    const imports = [...source.matchAll(/from '([^']+)'/g)].map(([, specifier]) => specifier);
    expect(imports).not.toEqual([]);
    expect(['rivulet', 'rxjs']).toEqual(expect.arrayContaining(imports));
  });

  it('holds the agent that it is named after', () => {
    expect(agents.map(({ manifest }) => `${manifest.name}.ts`)).toEqual(files);
  });

  it('names only agents of this folder as those it depends on', () => {
    const named = agents
      .flatMap(({ manifest }) => manifest.metadata?.dependencies ?? [])
      .map(({ name }) => `${name}.ts`);
    expect(files).toEqual(expect.arrayContaining(named));
  });
});

describe('counter', () => {
  it('remembers what was said and how much, within a session', async () => {
    const first = await run('counter', 'one two three');
    expect(first.text).toBe('Message 1; words so far: 3.');
    const second = await run('counter', 'four', next(first));
    expect(second.text).toBe('Message 2; words so far: 4. Before this you said: one two three');
    const third = await run('counter', 'five six', next(second));
    expect(third.text).toBe('Message 3; words so far: 6. Before this you said: four');
  });

  it('knows nothing of other sessions', async () => {
    await run('counter', 'somewhere else');
    expect(await answer('counter', 'hello')).toBe('Message 1; words so far: 1.');
  });
});

describe('chain', () => {
  it('gives each stage the output of the one before', async () => {
    expect(await answer('chain', 'the quick brown fox')).toBe('FOX BROWN QUICK THE');
  });

  it('streams the last stage token by token', async () => {
    const { events } = await run('chain', 'a b c');
    const tokens = events.flatMap((event) => (event.type === 'message.part' ? event.part.content : []));
    expect(tokens).toEqual(['C', ' B', ' A']);
  });
});

describe('route', () => {
  it.each([
    ['how many words are these', 'count-words', '5 words'],
    ['shout it out', 'upper', 'SHOUT IT OUT'],
    ['first last', 'reverse', 'last first'],
  ])('answers "%s" with %s', async (input, agent, expected) => {
    const { text, parts } = await run('route', input);
    expect(text).toBe(expected);
    expect(parts[0]?.metadata).toEqual({ kind: 'trajectory', message: `Sent to ${agent}.` });
  });
});

describe('parallel', () => {
  it('gives every answer as an artifact, and a summary when all are there', async () => {
    const { parts } = await run('parallel', 'to be or not');
    expect(parts.map(({ name, content }) => [name, content])).toEqual([
      ['count-words.txt', '4 words'],
      ['reverse.txt', 'not or be to'],
      ['upper.txt', 'TO BE OR NOT'],
      [undefined, 'In the order they answered: count-words.txt, reverse.txt, upper.txt'],
    ]);
  });

  it('starts all at once, and the slowest holds back no other', async () => {
    const slow = new Subject<string>();
    // The first one asked speaks only after the last one asked has begun.
    const standIns: RunAgentOptions['calls'] = {
      'count-words': () => slow,
      reverse: () => of('quick'),
      upper: () => {
        slow.next('slow');
        slow.complete();
        return EMPTY;
      },
    };
    const { parts } = await run('parallel', 'go', { calls: standIns });
    expect(parts.map(({ content }) => content)).toEqual([
      'quick',
      'slow',
      '',
      'In the order they answered: reverse.txt, count-words.txt, upper.txt',
    ]);
  });
});

describe('hand-off', () => {
  it('greets a session once, and hands it to the specialist', async () => {
    const first = await run('hand-off', 'please count my words');
    expect(first.text).toBe('Welcome! From here on count-words answers you.\n4 words');
    expect((await run('hand-off', 'now these', next(first))).text).toBe('2 words');
    expect(await answer('hand-off', 'hello')).toBe('Welcome! From here on upper answers you.\nHELLO');
  });

  it('speaks with one name, whichever agent answers', async () => {
    const { output } = (await run('hand-off', 'hello')).run;
    expect(output.map(({ role }) => role)).toEqual(['agent/hand-off']);
  });
});

describe('approval', () => {
  const asked = ({ questions }: RanAgent) => questions.map(({ message }) => textOf(message));

  it('does what the plan says once it is approved', async () => {
    const waiting = await run('approval', 'buy paint, then paint the fence');
    expect([waiting.run.status, waiting.run.output]).toEqual(['awaiting', []]);
    expect(asked(waiting)).toEqual([expect.stringMatching(/^1\. buy paint\n2\. paint the fence\n/)]);

    const done = await run('approval', 'buy paint, then paint the fence', { answers: ['approve'] });
    expect(done.run.status).toBe('completed');
    expect(done.text).toBe('Done: buy paint\nDone: paint the fence\n');
  });

  it('puts a changed plan to the human again, and follows the one approved last', async () => {
    const answers = ['1. paint the house\n2. rent it out', 'paint the house', 'Approve'];
    const done = await run('approval', 'sell the house', { answers });
    expect(asked(done)).toEqual([
      expect.stringMatching(/^1\. sell the house\n/),
      expect.stringMatching(/^1\. paint the house\n2\. rent it out\n/),
      expect.stringMatching(/^1\. paint the house\n\n/),
    ]);
    expect(done.text).toBe('Done: paint the house\n');
  });

  it('does nothing when it is stopped', async () => {
    const stopped = await run('approval', 'sell the house', { answers: ['stop'] });
    expect(stopped.run.status).toBe('completed');
    expect(stopped.text).toBe('Nothing was done.');
  });
});
