import { concat, defer, interval, map, merge, NEVER, Observable, of, range, take, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Agent, AgentError, type AgentFunction, type AgentOutput, type Run } from '../../src/index.ts';
import { agent, echo } from '../support/agents.ts';
import { RunFeed } from '../support/run-feed.ts';
import { ask, eventsOf, finished, frames, serveApi, textOf, types } from '../support/serve.ts';

const run = async (bad: Agent, options = {}): Promise<{ run: Run; types: string[] }> => {
  const served = await serveApi([bad, echo], options);
  const answered: Run = await (await served.post('/runs', ask(bad.manifest.name))).json();
  // The server still works: the next run completes.
  expect((await (await served.post('/runs', ask('echo'))).json()).status).toBe('completed');
  return { run: answered, types: types(await eventsOf(served, answered.run_id)) };
};

const cases: [string, AgentFunction, string, string][] = [
  [
    'throws at once',
    () => {
      throw new Error('at once');
    },
    'server_error',
    'at once',
  ],
  ['errors at once', () => throwError(() => new Error('soon')), 'server_error', 'soon'],
  [
    'errors later',
    () =>
      concat(
        of('a'),
        timer(2).pipe(
          map(() => {
            throw new Error('later');
          }),
        ),
      ),
    'server_error',
    'later',
  ],
  ['rejects', () => Promise.reject(new Error('rejected')), 'server_error', 'rejected'],
  [
    'throws in a generator',
    async function* () {
      yield 'a';
      throw new Error('inside');
    },
    'server_error',
    'inside',
  ],
  [
    'throws a string',
    () => {
      throw 'just text';
    },
    'server_error',
    'just text',
  ],
  ['throws nothing', () => throwError(() => undefined), 'server_error', 'threw a value that is not an Error'],
  [
    'throws an error of its own',
    () => throwError(() => new AgentError('quota', 'used up', { left: 0 })),
    'server_error',
    'used up',
  ],
  ['emits a number', () => of<AgentOutput>(5 as never), 'server_error', 'got number'],
  ['emits null', () => of<AgentOutput>(null as never), 'server_error', 'got null'],
  ['returns nothing', () => undefined as never, 'server_error', 'Agent bad emitted invalid output: it returned '],
  [
    'returns an object',
    () => ({ content: 'a' }) as never,
    'server_error',
    'Agent bad emitted invalid output: it returned ',
  ],
];

describe('whatever an agent does', () => {
  it.each(cases)('fails its run with one terminal event where it %s', async (_, work, code, message) => {
    const result = await run(agent('bad', work));
    expect(result.run.status).toBe('failed');
    expect(result.run.error?.code).toBe(code);
    expect(result.run.error?.message).toContain(message);
    expect(result.run.finished_at).toBeDefined();
    expect(result.types.filter((type) => /run\.(completed|failed|cancelled)/.test(type))).toEqual(['run.failed']);
    expect(result.types.at(-1)).toBe('run.failed');
  });

  it('keeps the data of its error, and its output until then', async () => {
    const { run: failed, types: seen } = await run(
      agent('bad', () =>
        concat(
          of('so far'),
          throwError(() => new AgentError('x', 'y', { z: 1 })),
        ),
      ),
    );
    expect(failed.error).toEqual({ code: 'server_error', message: 'y', data: { z: 1, code: 'x' } });
    expect(textOf(failed)).toBe('so far');
    expect(seen).not.toContain('message.completed');
  });

  it('is ignored when it emits after the end', async () => {
    const { run: done } = await run(
      agent(
        'late',
        () =>
          new Observable<string>((subscriber) => {
            subscriber.next('a');
            subscriber.complete();
            subscriber.next('b');
            subscriber.error(new Error('c'));
          }),
      ),
    );
    expect(done.status).toBe('completed');
    expect(textOf(done)).toBe('a');
  });

  it('may emit nothing and complete', async () => {
    const result = await run(agent('silent', () => []));
    expect(result.run).toMatchObject({ status: 'completed', output: [] });
    expect(result.types).toEqual(['run.created', 'run.in-progress', 'run.completed']);
  });

  it('takes a bare string as one part', async () => {
    const result = await run(agent('bare', () => 'hey'));
    expect(result.types.filter((type) => type === 'message.part')).toHaveLength(1);
    expect(textOf(result.run)).toBe('hey');
  });

  it('is stopped when an endless Observable emits synchronously', async () => {
    const result = await run(
      agent('flood', () => range(0, Number.POSITIVE_INFINITY).pipe(map(String))),
      { limits: { events: 1000 } },
    );
    expect(result.run.error?.data?.reason).toBe('output_limit');
    expect(result.run.error?.message).toContain('1000 events');
  });

  it('is stopped when an endless generator never awaits, and other runs go on meanwhile', async () => {
    const served = await serveApi(
      [
        agent('flood', async function* () {
          for (;;) yield 'x'.repeat(1000);
        }),
        echo,
      ],
      { limits: { chars: 8_000_000, backlog: 100_000 } },
    );
    // It has the changes without the output.
    const feed = await RunFeed.open(served.url);
    const { run_id } = await (await served.post('/runs', ask('flood', 'go', { mode: 'async' }))).json();
    expect((await (await served.post('/runs', ask('echo'))).json()).status).toBe('completed');
    await feed.has(run_id, 'failed');
    expect(feed.rows.get(run_id)?.error?.data?.reason).toBe('output_limit');
    const ends = feed.seen.flatMap(({ run }) => (run?.finished_at === undefined ? [] : [run.agent_name]));
    expect(ends).toEqual(['echo', 'flood']);
  });

  it('runs once, however many readers it has', async () => {
    let runs = 0;
    const counted = agent('counted', () =>
      defer(() => {
        runs += 1;
        return interval(1).pipe(take(20), map(String));
      }),
    );
    const served = await serveApi([counted]);
    const first = await served.post('/runs', ask('counted', 'go', { mode: 'stream' }));
    const run_id = first.headers.get('run-id') ?? '';
    const readers = await Promise.all(
      Array.from({ length: 10 }, () => served.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' })),
    );
    const seen = await Promise.all([first, ...readers].map(frames));
    for (const one of seen) expect(one).toEqual(seen[0]);
    expect(runs).toBe(1);
  });

  it('may throw in its teardown', async () => {
    const served = await serveApi([
      agent(
        'mean',
        () =>
          new Observable(() => () => {
            throw new Error('in teardown');
          }),
      ),
      echo,
    ]);
    const { run_id } = await (await served.post('/runs', ask('mean', 'go', { mode: 'async' }))).json();
    expect((await served.post(`/runs/${run_id}/cancel`)).status).toBe(202);
    expect((await finished(served, run_id)).status).toBe('cancelled');
  });

  it('is cancelled after `cancelGrace` when it ignores its signal', async () => {
    const served = await serveApi(
      [
        agent('deaf', async function* () {
          yield 'a';
          await new Promise(() => {});
        }),
      ],
      { limits: { cancelGrace: 30 } },
    );
    const { run_id } = await (await served.post('/runs', ask('deaf', 'go', { mode: 'async' }))).json();
    const answer: Run = await (await served.post(`/runs/${run_id}/cancel`)).json();
    expect(answer.status).toBe('cancelling');
    const ended = await finished(served, run_id);
    expect(ended.status).toBe('cancelled');
    expect(Date.parse(ended.finished_at ?? '') - Date.parse(ended.created_at)).toBeGreaterThanOrEqual(29);
  });

  it('gets a cancel through its signal, as do the agents that it called', async () => {
    const heard: string[] = [];
    const listen = (name: string) =>
      agent(name, (_, { signal }) => {
        signal.addEventListener('abort', () => heard.push(name));
        return NEVER;
      });
    const parent = agent('parent', (_, context) => {
      context.signal.addEventListener('abort', () => heard.push('parent'));
      return merge(of('up'), context.call('child', 'x'));
    });
    const grand = agent('child', (_, context) => {
      context.signal.addEventListener('abort', () => heard.push('child'));
      return context.call('grandchild', 'x');
    });
    const served = await serveApi([parent, grand, listen('grandchild')]);
    const { run_id } = await (await served.post('/runs', ask('parent', 'go', { mode: 'async' }))).json();
    await served.post(`/runs/${run_id}/cancel`);
    expect((await finished(served, run_id)).status).toBe('cancelled');
    expect(heard.sort()).toEqual(['child', 'grandchild', 'parent']);
  });

  it('cannot call itself endlessly', async () => {
    const result = await run(agent('ouroboros', (input, context) => context.call('ouroboros', input)));
    expect(result.run.error?.message).toContain('call each other more than 16 deep');
  });

  it('fails when it calls an unknown agent', async () => {
    const result = await run(agent('caller', (_, context) => context.call('no-agent', 'x')));
    expect(result.run.error).toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('no agent no-agent'),
    });
  });

  it('is told a similar name where it mistypes that of the agent which it calls', async () => {
    const caller = agent('caller', (_, context) => context.call('ecko', 'x'));
    const result = await run(caller);
    expect(result.run.error?.message).toBe('There is no agent ecko; did you mean echo? GET /agents lists them.');
  });
});
