import { readdir, readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { type Agent, createServer, defineAgent, type Message, type Run } from 'rivulet';
import { EMPTY, type Observable, of, Subject } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import parallel from '../../examples/agents/parallel.ts';

const folder = new URL('../../examples/agents/', import.meta.url);
const files = (await readdir(folder)).filter((name) => name.endsWith('.ts'));
const agents = await Promise.all(
  files.map(async (name): Promise<Agent> => (await import(`../../examples/agents/${name.slice(0, -3)}.ts`)).default),
);

let app: FastifyInstance;
let base: string;

beforeAll(async () => {
  app = await createServer({ agents });
  base = await app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => app.close());

async function post(path: string, body: object): Promise<Run> {
  const response = await fetch(`${base}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.json();
}

const message = (content: string) => ({ role: 'user', parts: [{ content }] });
const run = (agent_name: string, text: string, session_id?: string): Promise<Run> =>
  post('/runs', { agent_name, session_id, input: [message(text)] });
const reply = (run_id: string, text: string): Promise<Run> =>
  post(`/runs/${run_id}`, { mode: 'sync', await_resume: { type: 'message', message: message(text) } });

const textOf = (messages: readonly Message[]): string =>
  messages.flatMap(({ parts }) => parts.map((part) => part.content ?? '')).join('');
const answer = async (agent: string, text: string, session_id?: string): Promise<string> =>
  textOf((await run(agent, text, session_id)).output);
const question = ({ await_request }: Run): string => textOf(await_request ? [await_request.message] : []);

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
    expect(textOf(first.output)).toBe('Message 1; words so far: 3.');
    expect(await answer('counter', 'four', first.session_id)).toBe(
      'Message 2; words so far: 4. Before this you said: one two three',
    );
    expect(await answer('counter', 'five six', first.session_id)).toBe(
      'Message 3; words so far: 6. Before this you said: four',
    );
  });

  it('knows nothing of other sessions', async () => {
    await run('counter', 'somewhere else');
    expect(await answer('counter', 'hello')).toBe('Message 1; words so far: 1.');
  });
});

describe('chain', () => {
  it('gives each stage what the one before it said', async () => {
    expect(await answer('chain', 'the quick brown fox')).toBe('FOX BROWN QUICK THE');
  });

  it('streams the last stage token by token', async () => {
    const { run_id } = await run('chain', 'a b c');
    const { events } = await (await fetch(`${base}/runs/${run_id}/events`)).json();
    const tokens = events.flatMap(({ part }: { part?: { content: string } }) => part?.content ?? []);
    expect(tokens).toEqual(['C', ' B', ' A']);
  });
});

describe('route', () => {
  it.each([
    ['how many words are these', 'count-words', '5 words'],
    ['shout it out', 'upper', 'SHOUT IT OUT'],
    ['first last', 'reverse', 'last first'],
  ])('answers "%s" with %s', async (text, agent, expected) => {
    const { output } = await run('route', text);
    expect(textOf(output)).toBe(expected);
    expect(output[0]?.parts[0]?.metadata).toEqual({ kind: 'trajectory', message: `Sent to ${agent}.` });
  });
});

describe('parallel', () => {
  it('gives every answer as an artifact, and a summary when all are there', async () => {
    const { output } = await run('parallel', 'to be or not');
    const parts = output.flatMap((one) => one.parts);
    expect(parts.map(({ name, content }) => [name, content])).toEqual([
      ['count-words.txt', '4 words'],
      ['reverse.txt', 'not or be to'],
      ['upper.txt', 'TO BE OR NOT'],
      [undefined, 'In the order they answered: count-words.txt, reverse.txt, upper.txt'],
    ]);
  });

  it('starts all at once, and lets nobody wait for the slowest', async () => {
    const slow = new Subject<string>();
    const helper = (name: string, said: () => Observable<string>) =>
      defineAgent({ name, description: 'Stands in for the example of that name.' }, said);
    // The first one asked speaks only after the last one asked has begun.
    const others = [
      helper('count-words', () => slow),
      helper('reverse', () => of('quick')),
      helper('upper', () => {
        slow.next('slow');
        slow.complete();
        return EMPTY;
      }),
    ];
    const server = await createServer({ agents: [parallel, ...others] });
    try {
      const payload = { agent_name: 'parallel', input: [message('go')] };
      const { output } = (await server.inject({ method: 'POST', url: '/runs', payload })).json<Run>();
      expect(output[0]?.parts.map(({ content }) => content)).toEqual([
        'quick',
        'slow',
        '',
        'In the order they answered: reverse.txt, count-words.txt, upper.txt',
      ]);
    } finally {
      await server.close();
    }
  });
});

describe('hand-off', () => {
  it('welcomes a conversation once, and leaves the rest of it to the specialist', async () => {
    const first = await run('hand-off', 'please count my words');
    expect(textOf(first.output)).toBe('Welcome! From here on count-words answers you.\n4 words');
    expect(await answer('hand-off', 'now these', first.session_id)).toBe('2 words');
    expect(await answer('hand-off', 'hello')).toBe('Welcome! From here on upper answers you.\nHELLO');
  });

  it('speaks with one name, whoever answers', async () => {
    const { output } = await run('hand-off', 'hello');
    expect(output.map(({ role }) => role)).toEqual(['agent/hand-off']);
  });
});

describe('approval', () => {
  it('does what the plan says once it is approved', async () => {
    const asked = await run('approval', 'buy paint, then paint the fence');
    expect(asked.status).toBe('awaiting');
    expect(asked.output).toEqual([]);
    expect(question(asked)).toMatch(/^1\. buy paint\n2\. paint the fence\n/);

    const done = await reply(asked.run_id, 'approve');
    expect(done.status).toBe('completed');
    expect(textOf(done.output)).toBe('Done: buy paint\nDone: paint the fence\n');
  });

  it('puts a changed plan to the human again, and follows the one approved last', async () => {
    const { run_id } = await run('approval', 'sell the house');
    const again = await reply(run_id, '1. paint the house\n2. rent it out');
    expect(again.status).toBe('awaiting');
    expect(question(again)).toMatch(/^1\. paint the house\n2\. rent it out\n/);
    expect(question(await reply(run_id, 'paint the house'))).toMatch(/^1\. paint the house\n\n/);
    expect(textOf((await reply(run_id, 'Approve')).output)).toBe('Done: paint the house\n');
  });

  it('does nothing when it is stopped', async () => {
    const { run_id } = await run('approval', 'sell the house');
    const stopped = await reply(run_id, 'stop');
    expect(stopped.status).toBe('completed');
    expect(textOf(stopped.output)).toBe('Nothing was done.');
  });
});
