import { catchError, concat, map, merge, NEVER, of, race, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Run } from '../../src/index.ts';
import { agent } from '../support/agents.ts';
import { ask, eventsOf, serveApi } from '../support/serve.ts';

const inner = agent('inner', () => of('i'));
const broken = agent('broken', () => throwError(() => new Error('no luck')));
const never = agent('never', () => NEVER);
const outer = agent('outer', (_, context) =>
  concat(
    context.call('inner', 'a'),
    context.call('inner', 'b'),
    context.call('broken', 'c').pipe(catchError(() => of('caught'))),
    race(context.call('never', 'd'), timer(1).pipe(map(() => 'late'))),
  ),
);
const caller = agent('caller', (_, context) => context.call('outer', 'go'));
const parallel = agent('parallel', (_, context) => merge(context.call('inner', 'a'), context.call('outer', 'b')));

describe.each([false, true])('a call of another agent (durable: %s)', (durable) => {
  const reported = async (name: string) => {
    const agents = [inner, broken, never, outer, caller, parallel].map((one) => ({ ...one, options: { durable } }));
    const served = await serveApi(agents);
    const { run_id, status }: Run = await (await served.post('/runs', ask(name))).json();
    expect(status).toBe('completed');
    return (await eventsOf(served, run_id)).flatMap((event) => (event.type === 'generic' ? [event.generic] : []));
  };

  it('reports its beginning and its end, with the calls around it and the time', async () => {
    const calls = await reported('caller');
    for (const { at } of calls) expect(at).toMatch(/^\d{4}-.*Z$/);
    expect(calls.map(({ path, agent: name, state }) => [path, name, state])).toEqual([
      ['outer/1', 'outer', 'began'],
      ['outer/1 inner/1', 'inner', 'began'],
      ['outer/1 inner/1', 'inner', 'completed'],
      ['outer/1 inner/2', 'inner', 'began'],
      ['outer/1 inner/2', 'inner', 'completed'],
      ['outer/1 broken/1', 'broken', 'began'],
      ['outer/1 broken/1', 'broken', 'failed'],
      ['outer/1 never/1', 'never', 'began'],
      ['outer/1 never/1', 'never', 'cancelled'],
      ['outer/1', 'outer', 'completed'],
    ]);
  });

  it('is told apart from calls beside it', async () => {
    const calls = await reported('parallel');
    const began = calls.flatMap(({ path, state }) => (state === 'began' ? [path] : []));
    expect(began).toEqual([
      'inner/1',
      'outer/1',
      'outer/1 inner/1',
      'outer/1 inner/2',
      'outer/1 broken/1',
      'outer/1 never/1',
    ]);
    expect(calls.length).toBe(2 * began.length);
  });
});
